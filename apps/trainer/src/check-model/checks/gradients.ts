import { join } from "node:path";
import type { TrainSequence } from "@cria/core";
import { exportModel, type LlamaModel, type LoadModelOptions, readGguf } from "@cria/engine";
import { readAvailableMemory } from "@cria/trainer/internal";
import { formatBytes } from "../../terminal/format-bytes.js";
import { describeError, type Finding, judge, other } from "../finding.js";
import { countExcerpt, writeExcerpt } from "../make-excerpt.js";
import type { CheckContext, ModelCheck } from "../model-check.js";
import { fillAdapter } from "../sample-text.js";
import {
  type GradientModel,
  groupTensors,
  makeLesson,
  measureSlopes,
  type Slope,
  sumSquares,
  weightedSum,
} from "../slopes.js";

const ADAPTER = "gradients, adapter";
const FULL = "gradients, all weights";
const ROUNDING = "gradients, rounding";
const ALONE = "gradients, batch and alone";

const BLOCKS = 2;
const LORA = { rank: 8, alpha: 16 };
/** Scale of B's values: far from zero, so that A has a gradient too. */
const ADAPTER_SCALE = 0.05;
/** Relative error of the worst kind of tensor; F32 weights on a CPU. */
export const SLOPE_BOUND = 1e-2;
/** Relative to the CPU's gradient: a GPU multiplies F32 as TF32, of 11 bits. */
const DEVICE_BOUND = 1e-2;
/** Largest effect of rounding activations, beyond which a gradient points elsewhere. */
const ROUNDING_BOUND = 0.5;
/**
 * Largest distance from the gradients of single sequences. Sums have another order; over weights other than F32
 * gradients are multiplied as 16-bit integers, and a shared token's gradient is rounded as one sum. For the worst
 * tensor 0.09 % (SmolLM2-135M, Q4_1) and 1.1 % (random weights, Q8_0) were measured.
 */
const ALONE_BOUND = { exact: 1e-3, rounded: 5e-2 };

/**
 * Checks gradients on the model's first blocks, converted to F32: with quantized weights the rounding of activations
 * makes the loss a staircase, which could hide a wrong derivative. The effect of that rounding is measured separately.
 */
export const gradientsCheck: ModelCheck = {
  name: "gradients",
  needsLora: true,
  seconds: 70,
  async run(context) {
    context.begin(ADAPTER);
    const header = await readGguf(context.path);
    const parameters = countExcerpt(header, BLOCKS);
    const needed = 16 * parameters;
    if (needed > readAvailableMemory()) {
      const found = `the first ${BLOCKS} blocks need ${formatBytes(needed)} as F32`;
      return [other("not checked", ADAPTER, found, "use a machine with more memory")];
    }
    const excerpt = join(context.folder, "excerpt.gguf");
    const exact = join(context.folder, "excerpt-f32.gguf");
    await writeExcerpt(context.path, excerpt, BLOCKS);
    await exportModel({ base: excerpt, output: exact, quantize: "F32", threads: context.threads });
    context.advance(0.1);
    const findings: Finding[] = [];
    const add = async (name: string, work: () => Promise<Finding | null>) => {
      context.begin(name);
      const finding = await work().catch((error: unknown) => describeError(name, error));
      if (finding) findings.push(finding);
    };
    const check = context.device === "cpu" ? checkByDifferences : checkByCpu;
    await add(ADAPTER, () => check(context, ADAPTER, exact, "lora", [0.1, 0.45]));
    await add(FULL, () => check(context, FULL, exact, "full", [0.45, 0.8]));
    let moved = Number.NaN;
    await add(ALONE, async () => {
      const { finding, ...rest } = await checkAlone(context);
      moved = rest.moved;
      return finding;
    });
    context.advance(0.95);
    await add(ROUNDING, () => checkRounding(context, excerpt, exact, moved));
    return findings;
  },
};

/** Opens the excerpt, either with an adapter of nonzero values or fully trainable. */
async function openExcerpt(
  context: CheckContext,
  path: string,
  trainable: "lora" | "full",
  more: Partial<LoadModelOptions> = {},
): Promise<LlamaModel> {
  const sizes = { contextSize: 128, maxSequences: 1 };
  const lora = trainable === "lora" ? LORA : null;
  const model = await context.load({ path, ...sizes, trainable, lora, ...more });
  if (lora) await fillAdapter(model, ADAPTER_SCALE);
  return model;
}

/** @param range of this check's progress. */
async function checkByDifferences(
  context: CheckContext,
  name: string,
  path: string,
  trainable: "lora" | "full",
  [from, to]: readonly [number, number],
): Promise<Finding> {
  const model = await openExcerpt(context, path, trainable);
  try {
    const advance = (share: number) => context.advance(from + (to - from) * share);
    return judgeSlopes(
      name,
      await measureSlopes(model, makeLesson(model, 2, 24), { enough: SLOPE_BOUND / 5, advance }),
    );
  } finally {
    await model.dispose();
  }
}

export function judgeSlopes(name: string, slopes: readonly Slope[]): Finding {
  const [worst] = [...slopes].sort((a, b) => b.error - a.error);
  if (!worst) return other("falls short", name, "nothing is trained", "report this");
  const isDead = slopes.every(({ numeric }) => numeric === 0);
  const kinds = new Set(slopes.map(({ kind }) => kind)).size;
  const found = `${kinds} kinds of tensors, along the gradient and at random: at most ${formatShare(worst.error)} off by central differences (${worst.kind}, ${worst.direction}; bound ${formatShare(SLOPE_BOUND)})`;
  return judge(
    name,
    worst.error <= SLOPE_BOUND && !isDead,
    found,
    "do not train on this device; report this, with the kind of tensor",
  );
}

/** Compares a GPU's gradient with the CPU's, which finite differences check. */
async function checkByCpu(
  context: CheckContext,
  name: string,
  path: string,
  trainable: "lora" | "full",
): Promise<Finding> {
  const here = await takeGradients(await openExcerpt(context, path, trainable));
  const there = await takeGradients(await openExcerpt(context, path, trainable, { device: "cpu" }));
  const { distance, kind } = compareGradients(there, here);
  const found = `at most ${formatShare(distance)} from the CPU's (${kind}; bound ${formatShare(DEVICE_BOUND)})`;
  return judge(
    name,
    distance <= DEVICE_BOUND,
    found,
    "set trainer.device to cpu; report this, with the kind of tensor",
  );
}

/**
 * Measures the effect of rounding activations: in the excerpt against the same weights as F32, and over the whole model
 * between two adapters so close that only the rounding tells them apart.
 */
async function checkRounding(
  context: CheckContext,
  excerpt: string,
  exact: string,
  moved: number,
): Promise<Finding | null> {
  const { tensors } = await readGguf(excerpt);
  if (tensors.every(({ type }) => type.name === "f32")) return null;
  const rounded = await takeGradients(await openExcerpt(context, excerpt, "lora"));
  const { whole } = compareGradients(await takeGradients(await openExcerpt(context, exact, "lora")), rounded);
  return judgeRounding(whole, moved);
}

export function judgeRounding(first: number, moved: number): Finding {
  const found = `rounded activations move them by ${formatShare(first)} in the first ${BLOCKS} blocks, compared with the same weights as F32 (bound ${formatShare(ROUNDING_BOUND)}); over the whole model by ${formatShare(moved)} when they are rounded anew`;
  return judge(ROUNDING, first <= ROUNDING_BOUND, found, "train over a more exact file: Q8_0, F16 or F32");
}

/**
 * Compares sequences that share a micro-batch with each of them alone, over the whole model.
 * @returns also the change of gradients when B grows by a ten thousandth.
 */
async function checkAlone(context: CheckContext): Promise<{ finding: Finding; moved: number }> {
  const model = await context.load({ contextSize: 128, maxSequences: 1, lora: LORA });
  try {
    await fillAdapter(model, ADAPTER_SCALE / 5);
    const lesson = makeLesson(model, 3, 12);
    // Two share a beginning, which is evaluated once.
    const shared = lesson.map((sequence, i) => (i === 2 ? continueOther(sequence, lesson[0]!) : sequence));
    const together = await sumGradients(model, [shared]);
    const alone = await sumGradients(
      model,
      shared.map((sequence) => [sequence]),
    );
    await fillAdapter(model, (ADAPTER_SCALE / 5) * (1 + 1e-4));
    const { whole: moved } = compareGradients(together, await sumGradients(model, [shared]));
    const isExact = context.device === "cpu" && Object.keys(model.info.weightTypes).every((type) => type === "f32");
    return { finding: judgeAlone(alone, together, isExact ? ALONE_BOUND.exact : ALONE_BOUND.rounded), moved };
  } finally {
    await model.dispose();
  }
}

export function judgeAlone(alone: Gradients, together: Gradients, bound: number): Finding {
  const { distance, kind } = compareGradients(alone, together);
  const found = `${formatShare(distance)} apart at most, over the whole model (${kind}; bound ${formatShare(bound)})`;
  return judge(ALONE, distance <= bound, found, "report this");
}

/** The same sequence after the first six tokens of another one. */
function continueOther(sequence: TrainSequence, other: TrainSequence): TrainSequence {
  const tokenIds = Array.from(sequence.tokenIds);
  for (let t = 0; t < Math.min(6, tokenIds.length - 1, other.tokenIds.length); t++) tokenIds[t] = other.tokenIds[t]!;
  return { ...sequence, tokenIds };
}

export type Gradients = Map<string, Float32Array>;

/** Gradients of a lesson, by tensor; disposes of the model. */
async function takeGradients(model: LlamaModel): Promise<Gradients> {
  try {
    return await sumGradients(model, [makeLesson(model, 2, 24)]);
  } finally {
    await model.dispose();
  }
}

/** Gradients of the batches, added up. */
async function sumGradients(model: GradientModel, batches: readonly TrainSequence[][]): Promise<Gradients> {
  const gradients: Gradients = new Map();
  for (const batch of batches) await model.train(batch, weightedSum, null);
  for (const name of [...groupTensors(model).values()].flat())
    gradients.set(name, await model.readTensor(name, "gradient"));
  await model.zeroGradients();
  return gradients;
}

/** Distances relative to the expected gradient: of the worst tensor, and of all tensors as one vector. */
export function compareGradients(
  expected: Gradients,
  received: Gradients,
): { distance: number; kind: string; whole: number } {
  const worst = { distance: 0, kind: "none" };
  let [all, off] = [0, 0];
  for (const [name, gradient] of expected) {
    const other = received.get(name)!;
    const apart = sumSquares(gradient.map((value, i) => value - other[i]!));
    const size = sumSquares(gradient);
    all += size;
    off += apart;
    const distance = Math.sqrt(apart / Math.max(size, 1e-30));
    if (distance > worst.distance) Object.assign(worst, { distance, kind: name });
  }
  return { ...worst, whole: Math.sqrt(off / Math.max(all, 1e-30)) };
}

const formatShare = (share: number): string => `${Number((100 * share).toPrecision(2))} %`;
