import type { TrainCandidates, TrainSequence, Trajectory } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import type { LossWeights } from "./mix-mini-batch.js";
import type { ObservedTrajectory } from "./observations.js";
import { cutTrainSequences } from "./paths.js";

/** Training data of one step. Create it with `groups.toBatch` or `makeBatch`. */
export interface Batch {
  /** Prompt of each trajectory: mini-batches keep trajectories of the same prompt together. */
  groups: readonly string[];
  /**
   * Loss mask of every trajectory, including those without a sequence, because their tokens count in the denominators.
   */
  lossMasks: readonly ArrayLike<number>[];
  /** Sequences to train on, one per conversation, by index of trajectory. */
  sequences: ReadonlyMap<number, readonly TrainSequence[]>;
  /** The trajectories themselves: a loss term for observations finds the tokens of tools' answers in them. */
  trajectories?: readonly ObservedTrajectory[];
  /** Weights of each trajectory's row in the terms of the loss. Absent: all are 1. */
  lossWeights?: readonly LossWeights[];
  /** Temperature at which the trajectories were sampled; they are scored and trained at the same. */
  temperature: number;
  /** Maximum length of a response in tokens; default of `lossScaleFactor`. */
  responseLength: number;
  /**
   * True if the sequences have `oldLogprobs` (and `refLogprobs` if the loss needs them); if false, training adds them.
   */
  isScored: boolean;
}

/**
 * Scores that the caller has computed for each trajectory, in addition to advantages. If they are left out, training
 * scores the sequences.
 */
export interface BatchScores {
  /** Indices of the trajectories to train on; the others count only in the denominators. */
  used: ReadonlySet<number>;
  /** Loss mask of a trajectory, as long as its tokens; 1 for tokens in the loss. */
  lossMask: (index: number) => ArrayLike<number>;
  /** Further per-token columns of the loss: `oldLogprobs`, `refLogprobs`, `rolloutIsWeights` and others. */
  columns: (index: number) => Record<string, ArrayLike<number>>;
  /** Further tokens whose logprobs the loss reads; undefined: none. Default: none for all. */
  candidates?: (index: number) => TrainCandidates | undefined;
}

export interface MakeBatchOptions extends Pick<Batch, "temperature" | "responseLength"> {
  /** Advantages of each trajectory, as long as its tokens. */
  advantages: readonly Float32Array[];
  scores?: BatchScores;
  /** Weights of a trajectory's row in the terms of the loss, by their names. Default: all are 1. */
  lossWeights?: (index: number) => LossWeights | undefined;
  /** Indices of the trajectories to learn from, some of them twice. Default: each once. */
  taught?: readonly number[];
}

const { any, number, count } = optionChecks;

const batchChecks: ChecksOf<Required<MakeBatchOptions>> = {
  advantages: [Array.isArray, "a list of Float32Array, one for each trajectory"],
  scores: optionChecks.object,
  temperature: number,
  responseLength: count,
  lossWeights: optionChecks.function,
  taught: any,
};

/** Makes a batch from trajectories and their advantages. @throws ConfigError for an unknown or wrong option. */
export function makeBatch(
  trajectories: readonly (ObservedTrajectory & Pick<Trajectory, "uid" | "responseMask">)[],
  options: MakeBatchOptions,
): Batch {
  checkOptions("makeBatch", options, batchChecks);
  const { advantages, scores, temperature, responseLength, lossWeights } = options;
  const { taught = [...trajectories.keys()] } = options;
  const maskOf = (index: number) => scores?.lossMask(index) ?? trajectories[index]!.responseMask;
  const sequences = new Map<number, TrainSequence[]>();
  // With branches, a conversation has only some of its trajectory's tokens.
  const hasBranches = taught.some((index) => trajectories[index]!.segments !== undefined);
  for (const [k, index] of taught.entries()) {
    if (scores && !scores.used.has(index)) continue;
    const lossMask = maskOf(index);
    if (!Array.prototype.includes.call(lossMask, 1)) continue;
    const columns = { advantages: advantages[index]!, ...scores?.columns(index) };
    const candidates = scores?.candidates?.(index);
    sequences.set(k, cutTrainSequences(trajectories[index]!, lossMask, columns, hasBranches, candidates));
  }
  return {
    groups: taught.map((index) => trajectories[index]!.uid),
    lossMasks: taught.map(maskOf),
    sequences,
    trajectories: taught.map((index) => trajectories[index]!),
    ...(lossWeights ? { lossWeights: taught.map((index) => lossWeights(index) ?? {}) } : {}),
    temperature,
    responseLength,
    isScored: scores !== undefined,
  };
}
