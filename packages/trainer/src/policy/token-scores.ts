import type { LikeliestTokens, PolicyEngine, ScoreOptions, ScoreResult } from "@cria/core";

/**
 * Scores of a trajectory's tokens for an update; arrays are as long as `tokenIds`, 0 for tokens that were not scored.
 */
export interface TokenScores {
  /**
   * Logprobs by the training graph, so that the ratio is exactly 1 before the first update; with bypass_mode by the
   * sampler.
   */
  oldLogprobs: Float32Array;
  /** Entropy in nats; null if it was not requested. */
  entropy: Float32Array | null;
  /** Sum of the squared probabilities of each distribution; null if it was not requested. */
  sumPiSquared: Float32Array | null;
  /** Logprobs by the reference policy; null if they were not requested. */
  refLogprobs: Float32Array | null;
  /** Logprobs by the teacher; null: there is none. */
  teacherLogprobs: Float32Array | null;
  /** The teacher's likeliest tokens in place of each; null: there is no teacher, or the loss does not compare them. */
  teacherLikeliest: LikeliestTokens | null;
}

export interface PolicyScoreOptions {
  /** Sampling temperature; default 1. */
  temperature?: number;
  entropy?: boolean;
  sumPiSquared?: boolean;
  /** True also scores by the reference policy. */
  reference?: boolean;
  signal?: AbortSignal;
  /**
   * Computes a micro-batch of the scores somewhere else, using `engine.computeScores`; `here` computes it in this
   * process. With the same weights the bits are the same everywhere. Default: `here`.
   */
  compute?: ScoreOptions["compute"];
}

/** Computes the scores of sequences; tokens before the first that counts have 0. */
export type ScoreTokens = (
  sequences: readonly { tokenIds: ArrayLike<number>; from?: number; lossMask?: ArrayLike<number> }[],
  options?: PolicyScoreOptions,
) => Promise<TokenScores[]>;

/** Computes the reference policy's logprobs of sequences; tokens before `from` have 0. */
export type ScoreReference = (
  sequences: readonly { tokenIds: ArrayLike<number>; from?: number }[],
  options?: Pick<PolicyScoreOptions, "temperature" | "signal" | "compute">,
) => Promise<Float32Array[]>;

/** Scores by a teacher, with its likeliest tokens among those of the policy if they are requested. */
export type TeacherScores = Pick<ScoreResult, "logprobs" | "likeliest">;

export interface TeacherScoreOptions extends Pick<PolicyScoreOptions, "temperature" | "signal"> {
  /** Number of likeliest tokens to find in place of each token, at most the policy's vocabulary; default 0. */
  topk?: number;
}

/**
 * A model whose logprobs of the policy's tokens are the target of an update: on-policy distillation (arXiv:2306.13649).
 */
export interface Teacher {
  /** Scores sequences at the policy's temperature, in natural logarithms; tokens before `from` have 0. */
  score: (
    sequences: readonly { tokenIds: ArrayLike<number>; from?: number }[],
    options?: TeacherScoreOptions,
  ) => Promise<TeacherScores[]>;
  /** Samples turns in place of the policy. Absent: the teacher only scores. */
  engine?: Pick<PolicyEngine, "createSequence">;
  dispose(): Promise<void>;
}
