import type { ScoreOptions } from "@cria/core";

/** What an update needs to know of a trajectory's tokens; arrays as long as `tokenIds`, 0 where nothing was scored. */
export interface TokenScores {
  /** By the training graph, so that the ratio is exactly 1 before the first update; with bypass_mode by the sampler. */
  oldLogprobs: Float32Array;
  /** In nats; null where it was not asked for. */
  entropy: Float32Array | null;
  /** Of the squared probabilities of each distribution; null where it was not asked for. */
  sumPiSquared: Float32Array | null;
  /** By the reference policy; null where it was not asked for. */
  refLogprobs: Float32Array | null;
  /** By the teacher; null: there is none. */
  teacherLogprobs: Float32Array | null;
}

export interface PolicyScoreOptions {
  /** Default 1. */
  temperature?: number;
  entropy?: boolean;
  sumPiSquared?: boolean;
  /** Also score by the reference policy. */
  reference?: boolean;
  signal?: AbortSignal;
  /**
   * Computes a micro-batch of the scores somewhere, by `engine.computeScores`; `here` does so in this process. The bits are the same
   * wherever that is, if the weights are. Default: `here`.
   */
  compute?: ScoreOptions["compute"];
}

/** Gives the scores of sequences; those of tokens before the first that counts are 0. */
export type ScoreTokens = (
  sequences: readonly { tokenIds: ArrayLike<number>; from?: number; lossMask?: ArrayLike<number> }[],
  options?: PolicyScoreOptions,
) => Promise<TokenScores[]>;

/** Gives the reference policy's logprobs of sequences; those of tokens before `from` are 0. */
export type ScoreReference = (
  sequences: readonly { tokenIds: ArrayLike<number>; from?: number }[],
  options?: Pick<PolicyScoreOptions, "temperature" | "signal" | "compute">,
) => Promise<Float32Array[]>;
