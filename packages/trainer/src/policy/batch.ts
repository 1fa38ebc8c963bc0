import type { TrainSequence, Trajectory } from "@cria/core";
import { cutTrainSequences } from "./paths.js";

/** What a policy is trained on in one step. Make it with `groups.toBatch`, or `makeBatch`. */
export interface Batch {
  /** The prompt of each trajectory: mini-batches keep those of one prompt together. */
  groups: readonly string[];
  /** Tokens in the loss of every trajectory, also of those without a sequence: they count in the denominators. */
  lossMasks: readonly ArrayLike<number>[];
  /** By index of trajectory: the sequences that are trained on, one for each of its conversations. */
  sequences: ReadonlyMap<number, readonly TrainSequence[]>;
  /** At which the trajectories were sampled; they are scored and trained at it too. */
  temperature: number;
  /** The longest response allowed, in tokens: the default of `lossScaleFactor`. */
  responseLength: number;
  /** Whether the sequences have `oldLogprobs` (and `refLogprobs` where the loss needs them); if not, training adds them. */
  isScored: boolean;
}

/** What the caller has computed for each trajectory beside its advantages. Without it training scores the sequences. */
export interface BatchScores {
  /** Indices of the trajectories to train on; the others count only in the denominators. */
  used: ReadonlySet<number>;
  /** As long as the trajectory's tokens; 1 where the token takes part. */
  lossMask: (index: number) => ArrayLike<number>;
  /** Per-token columns of the loss beside `advantages`: `oldLogprobs`, `refLogprobs`, `rolloutIsWeights`. */
  columns: (index: number) => Record<string, ArrayLike<number>>;
}

export interface MakeBatchOptions extends Pick<Batch, "temperature" | "responseLength"> {
  /** Of each trajectory, as long as its tokens. */
  advantages: readonly Float32Array[];
  scores?: BatchScores;
  /** Trajectories to learn from, some of them twice: their indices. Default: each once. */
  taught?: readonly number[];
}

/** The batch of trajectories and their advantages. */
export function makeBatch(
  trajectories: readonly Pick<Trajectory, "uid" | "tokenIds" | "segments" | "responseMask">[],
  { advantages, scores, temperature, responseLength, taught = [...trajectories.keys()] }: MakeBatchOptions,
): Batch {
  const maskOf = (index: number) => scores?.lossMask(index) ?? trajectories[index]!.responseMask;
  const sequences = new Map<number, TrainSequence[]>();
  // A conversation's tokens are then not all of its trajectory's.
  const hasBranches = taught.some((index) => trajectories[index]!.segments !== undefined);
  for (const [k, index] of taught.entries()) {
    if (scores && !scores.used.has(index)) continue;
    const lossMask = maskOf(index);
    if (!Array.prototype.includes.call(lossMask, 1)) continue;
    const columns = { advantages: advantages[index]!, ...scores?.columns(index) };
    sequences.set(k, cutTrainSequences(trajectories[index]!, lossMask, columns, hasBranches));
  }
  return {
    groups: taught.map((index) => trajectories[index]!.uid),
    lossMasks: taught.map(maskOf),
    sequences,
    temperature,
    responseLength,
    isScored: scores !== undefined,
  };
}
