import { type ModelShape, shapes as measured } from "../../models/shapes.js";

/** Real models' shapes, and the cost of a token in each. */
export interface Shape
  extends Pick<ModelShape, "embedding" | "layers" | "heads" | "kvHeads" | "headSize" | "feedForward" | "vocabulary"> {
  name: string;
  /** One matrix serves as embedding and as output. */
  tied: boolean;
}

/** From the public configurations of Qwen2.5-0.5B, Qwen3-4B and Qwen3-8B. */
export const shapes = {
  "0.5B": {
    ...measured["qwen2.5-0.5b"],
    name: "0.5B",
    tied: true,
  },
  "4B": {
    ...measured["qwen3-4b"],
    name: "4B",
    tied: true,
  },
  "8B": {
    name: "8B",
    embedding: 4096,
    layers: 36,
    heads: 32,
    kvHeads: 8,
    headSize: 128,
    feedForward: 12_288,
    vocabulary: 151_936,
    tied: false,
  },
} as const satisfies Record<string, Shape>;

export type Training = "lora" | "full";

/** The job times were measured with it. */
const RANK = 16;

/** Inputs and outputs of each matrix of a layer. */
function listMatrices({ embedding, heads, kvHeads, headSize, feedForward }: Shape): [number, number][] {
  const [q, kv] = [heads * headSize, kvHeads * headSize];
  return [
    [embedding, q],
    [embedding, kv],
    [embedding, kv],
    [q, embedding],
    [embedding, feedForward],
    [embedding, feedForward],
    [feedForward, embedding],
  ];
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const countLinear = (shape: Shape) => shape.layers * sum(listMatrices(shape).map(([a, b]) => a * b));
const countHead = ({ embedding, vocabulary }: Shape) => embedding * vocabulary;

/** Weights that are trained, each a float in gradient and broadcast. Norms and biases are left out: below 0.1 %. */
export function countTrained(shape: Shape, training: Training): number {
  if (training === "lora") return RANK * shape.layers * sum(listMatrices(shape).map(([a, b]) => a + b));
  return countLinear(shape) + countHead(shape) * (shape.tied ? 1 : 2);
}

/** Attention of a token whose context is on average half of `length`: scores and values. */
const countAttention = ({ layers, heads, headSize }: Shape, length: number) =>
  4 * layers * heads * headSize * (length / 2);

/** Operations to evaluate or sample a token, the output matrix with it. */
export function countForward(shape: Shape, length: number): number {
  return 2 * (countLinear(shape) + countHead(shape)) + countAttention(shape, length);
}

/**
 * Operations to train on a token: forward, backward by inputs, and by weights in full training; half of the tokens are
 * in the loss and meet the output matrix; attention has two products forward and four backward.
 */
export function countBackward(shape: Shape, length: number, training: Training): number {
  const passes = training === "full" ? 3 : 2;
  return 2 * passes * (countLinear(shape) + countHead(shape) / 2) + 3 * countAttention(shape, length);
}
