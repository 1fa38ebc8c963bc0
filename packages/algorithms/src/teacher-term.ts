import { ConfigError } from "@cria/core";
import type { Algorithms } from "./algorithms.js";
import type { KlEstimate, KlName } from "./kl.js";
import type { PolicyLossParameters } from "./losses/policy-loss-parameters.js";
import type { PolicyLossName } from "./losses/policy-losses.js";

/**
 * Options of learning from a teacher's logprobs of the policy's own tokens: on-policy distillation (arXiv:2306.13649).
 */
export interface TeacherTermOptions {
  /**
   * Estimate of the divergence from d = logprob - teacherLogprob at each token. "k3" has the gradient of the forward
   * KL; "k1" has none by itself.
   */
  estimate: KlName | KlEstimate;
  /** Weight relative to the policy loss, at least 0. Without `taskRewards` it is 1. */
  coefficient: number;
  /** True if the task's rewards are trained on too; false: only the teacher, without entropy and KL terms. */
  taskRewards: boolean;
  /**
   * True uses the negative divergence of each token as its advantage in the loss `lossMode`; with "k1" this has the
   * gradient of the reverse KL. False: the estimate is differentiated.
   */
  policyGradient: boolean;
  /**
   * Loss for these advantages, with `policyGradient`; it has its own clip ratios, and must not need a whole mini-batch.
   */
  lossMode: PolicyLossName;
  clipRatioLow: number;
  clipRatioHigh: number;
  /** Limit of a token's divergence, which is clamped to ± this value; null: no limit. */
  maxLoss: number | null;
  /** Lower limit of the logprobs of policy and teacher, at most 0; lower logprobs are raised to it. Null: no limit. */
  minLogprob: number | null;
}

/** Defaults, as in a config. */
export const defaultTeacherTerm = {
  estimate: "k3",
  coefficient: 1,
  taskRewards: true,
  policyGradient: false,
  lossMode: "vanilla",
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  maxLoss: null,
  minLogprob: null,
} satisfies TeacherTermOptions;

/** Columns of the teacher: its logprobs, and the weight of each token (absent: 1). */
export const TEACHER_LOGPROBS = "teacherLogprobs";
export const TEACHER_WEIGHTS = "teacherWeights";

/** Tokens of one micro-batch, sequence after sequence. */
interface TeacherTokens {
  logprobs: Float32Array;
  oldLogprobs: Float32Array;
  teacherLogprobs: Float32Array;
  /** Weight of each token; absent: all are 1. */
  weights?: Float32Array;
  offsets: Int32Array;
  columns: Record<string, Float32Array>;
}

/** Values of each token. */
interface TeacherTerm {
  losses: Float64Array;
  /** d loss / d logprob. */
  gradients: Float64Array;
  /** The clamped divergence, without the weight. */
  divergences: Float64Array;
}

/**
 * Makes the loss term that moves the policy towards its teacher, token by token.
 * @throws ConfigError for a loss of `policyGradient` that needs a whole mini-batch.
 */
export function makeTeacherTerm(
  options: TeacherTermOptions,
  parameters: PolicyLossParameters,
  { klEstimates, policyLosses }: Pick<Algorithms, "klEstimates" | "policyLosses">,
): (tokens: TeacherTokens) => TeacherTerm {
  const { maxLoss, policyGradient, clipRatioLow, clipRatioHigh } = options;
  const estimate = klEstimates.resolve(options.estimate);
  const policyLoss = policyGradient ? policyLosses.resolve(options.lossMode) : null;
  if (policyLoss?.prepare) {
    throw new ConfigError("needs statistics of the whole mini-batch", {
      code: "config/bad-value",
      subject: "teacher: lossMode",
      expected: "a loss of single tokens or sequences: vanilla",
      received: String(options.lossMode),
    });
  }
  const least = options.minLogprob ?? Number.NEGATIVE_INFINITY;
  return ({ logprobs, oldLogprobs, teacherLogprobs, weights, offsets, columns }) => {
    const n = logprobs.length;
    const divergences = new Float64Array(n);
    const gradients = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const own = logprobs[i]!;
      const { value, gradient } = estimate(Math.max(own, least) - Math.max(teacherLogprobs[i]!, least));
      const isWithin = own >= least && (maxLoss === null || Math.abs(value) <= maxLoss);
      divergences[i] = maxLoss === null ? value : Math.max(-maxLoss, Math.min(maxLoss, value));
      gradients[i] = isWithin ? gradient : 0;
    }
    const scale = (values: Float64Array) => (weights ? values.map((value, i) => value * weights[i]!) : values);
    if (!policyLoss) return { losses: scale(divergences), gradients: scale(gradients), divergences };
    const advantages = Float32Array.from(scale(divergences), (value) => -value);
    const { losses, gradients: ofPolicy } = policyLoss.evaluate(
      { logprobs, oldLogprobs, advantages, offsets, columns },
      { ...parameters, clipRatioLow, clipRatioHigh },
    );
    return { losses, gradients: ofPolicy, divergences };
  };
}
