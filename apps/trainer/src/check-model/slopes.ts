import type { LossFunction, TrainSequence } from "@cria/core";
import type { LlamaModel } from "@cria/engine";
import { makeNormals, samplePrompts } from "./sample-text.js";

/** The methods of a model whose gradients are checked. */
export type GradientModel = Pick<
  LlamaModel,
  "tokenize" | "train" | "score" | "zeroGradients" | "listTensors" | "readTensor" | "writeTensor"
>;

/** The change of the loss when all tensors of a kind move together. */
export interface Slope {
  /** The tensors' name without the block: "attn_q.weight". */
  kind: string;
  direction: "along the gradient" | "random";
  /** Slope by the gradient (`analytic`), and by central differences of the loss. */
  analytic: number;
  numeric: number;
  /** Their distance, relative to the expected slope in such a direction. */
  error: number;
}

/** Changes of the loss in nats, and moves relative to the tensors' sizes, in the order of trial. */
const LOSS_CHANGES = [0.02, 0.005, 0.08];
const MOVES = [0.02, 0.005, 0.08];
/** A shared table of normals: its length is a prime that no axis divides. */
const TABLE = 262_139;

/** Texts whose tokens have different weights, from 0.5 to 1.5, divided by their number. */
export function makeLesson(model: Pick<LlamaModel, "tokenize">, sequences: number, length: number): TrainSequence[] {
  const normal = makeNormals(7);
  const prompts = samplePrompts(model, sequences, length);
  const count = prompts.reduce((sum, tokens) => sum + Math.max(0, tokens.length - 1), 0);
  return prompts.map((tokenIds) => ({
    tokenIds,
    lossMask: Array.from(tokenIds, (_, t) => (t > 0 ? 1 : 0)),
    columns: { weights: Array.from(tokenIds, () => (1 + Math.tanh(normal()) / 2) / Math.max(1, count)) },
  }));
}

/** Sum of weight * logprob. */
export const weightedSum: LossFunction = ({ logprobs, columns }) => {
  const weights = columns.weights!;
  return { loss: logprobs.reduce((sum, value, i) => sum + weights[i]! * value, 0), dLogprobs: weights };
};

/** The trainable tensors, grouped by their name after the block's number. */
export function groupTensors(model: Pick<LlamaModel, "listTensors">): Map<string, string[]> {
  const kinds = new Map<string, string[]>();
  for (const { name, trainable } of model.listTensors()) {
    if (!trainable) continue;
    const kind = name.replace(/^blk\.\d+\./, "");
    kinds.set(kind, [...(kinds.get(kind) ?? []), name]);
  }
  return kinds;
}

/**
 * Compares the gradient of each kind of tensor with central differences, along the gradient itself, where the signal is
 * largest, and in a random direction, which exposes every component. Of several sizes of the move, and of
 * what two of them say about none, the best agreement counts: small moves drown in the rounding of sums, large ones in the curvature. Restores the weights, and leaves no
 * gradients.
 * @param enough an error so small that no further size is tried.
 */
export async function measureSlopes(
  model: GradientModel,
  lesson: readonly TrainSequence[],
  { enough, advance }: { enough: number; advance: (share: number) => void },
): Promise<Slope[]> {
  const normal = makeNormals(11);
  const table = Float32Array.from({ length: TABLE }, () => normal());
  await model.train(lesson, weightedSum, null);
  const kinds = groupTensors(model);
  const slopes: Slope[] = [];
  let done = 0;
  for (const [kind, names] of kinds) {
    const tensors: Tensor[] = [];
    for (const [i, name] of names.entries()) {
      const [value, gradient] = [await model.readTensor(name), await model.readTensor(name, "gradient")];
      tensors.push({ name, value, gradient, first: i * 7919, size: Math.sqrt(sumSquares(value) / value.length) || 1 });
    }
    for (const direction of ["along the gradient", "random"] as const)
      slopes.push(await measureSlope(model, lesson, { kind, direction, tensors, table, enough }));
    advance(++done / kinds.size);
  }
  await model.zeroGradients();
  return slopes;
}

interface Tensor {
  name: string;
  value: Float32Array;
  gradient: Float32Array;
  /** Start of its random direction in the table. */
  first: number;
  /** Root mean square of its values, to which a random move is relative. */
  size: number;
}

interface SlopeToMeasure {
  kind: string;
  direction: Slope["direction"];
  tensors: readonly Tensor[];
  table: Float32Array;
  enough: number;
}

async function measureSlope(
  model: GradientModel,
  lesson: readonly TrainSequence[],
  { kind, direction, tensors, table, enough }: SlopeToMeasure,
): Promise<Slope> {
  const isRandom = direction === "random";
  const moveAt = ({ gradient, first, size }: Tensor, i: number) =>
    isRandom ? size * table[(first + i) % TABLE]! : gradient[i]!;
  let analytic = 0;
  let usual = 0;
  for (const tensor of tensors) {
    for (let i = 0; i < tensor.gradient.length; i++) analytic += tensor.gradient[i]! * moveAt(tensor, i);
    usual += (isRandom ? tensor.size : 1) ** 2 * sumSquares(tensor.gradient);
  }
  // A random slope may be near zero; its usual size is the gradient's length, in these units.
  const scale = isRandom ? Math.sqrt(usual) : usual;
  const evaluate = async (step: number) => {
    for (const tensor of tensors) {
      const moved = tensor.value.slice();
      for (let i = 0; i < moved.length; i++) moved[i]! += step * moveAt(tensor, i);
      await model.writeTensor(tensor.name, moved);
    }
    return computeLoss(model, lesson);
  };
  const slope: Slope = { kind, direction, analytic, numeric: 0, error: Number.POSITIVE_INFINITY };
  const take = (numeric: number) => {
    const error = Math.abs(numeric - analytic) / Math.max(scale, 1e-30);
    if (error < slope.error) Object.assign(slope, { numeric, error });
  };
  let before: { size: number; numeric: number } | null = null;
  for (const size of isRandom ? MOVES : LOSS_CHANGES.map((change) => change / Math.max(scale, 1e-30))) {
    const numeric = ((await evaluate(size)) - (await evaluate(-size))) / (2 * size);
    take(numeric);
    // Richardson's extrapolation: curvature's error grows with the square of the size.
    if (before) {
      const ratio = (before.size / size) ** 2;
      take((ratio * numeric - before.numeric) / (ratio - 1));
    }
    before = { size, numeric };
    if (slope.error <= enough) break;
  }
  for (const { name, value } of tensors) await model.writeTensor(name, value);
  return slope;
}

/** The loss by `score`, which only goes forward, summed in double precision. */
async function computeLoss(model: GradientModel, lesson: readonly TrainSequence[]): Promise<number> {
  const scores = await model.score(lesson);
  let loss = 0;
  for (const [s, { logprobs }] of scores.entries())
    for (let t = 1; t < logprobs.length; t++) loss += lesson[s]!.columns!["weights"]![t]! * logprobs[t]!;
  return loss;
}

export const sumSquares = (values: Float32Array): number => values.reduce((sum, value) => sum + value * value, 0);
