import { ConfigError } from "@cria/core";
import type { Algorithms } from "./algorithms.js";
import type { KlEstimate, KlName } from "./kl.js";
import type { PolicyLossParameters } from "./losses/policy-loss-parameters.js";
import type { PolicyLossName } from "./losses/policy-losses.js";

/** How a policy learns from a teacher's logprobs of the policy's own tokens: on-policy distillation (arXiv:2306.13649). */
export interface TeacherTermOptions {
  /** Estimate of the divergence from d = logprob - teacherLogprob at each token. "k3" has the forward KL's gradient, "k1" none by itself. */
  estimate: KlName | KlEstimate;
  /** Weight beside the policy loss, at least 0. Without `taskRewards` it is 1. */
  coefficient: number;
  /** Whether the task's rewards train too; false: the teacher alone, without entropy and KL terms. */
  taskRewards: boolean;
  /**
   * Whether minus the divergence is an advantage of each token, learned by `lossMode`; with "k1" that has the reverse KL's gradient.
   * false: the estimate is differentiated.
   */
  policyGradient: boolean;
  /** Of `policyGradient`: the loss that learns from these advantages, with clips of its own. It may not need a whole mini-batch. */
  lossMode: PolicyLossName;
  clipRatioLow: number;
  clipRatioHigh: number;
  /** A token's divergence is cut off at plus and minus this; null: never. */
  maxLoss: number | null;
  /** Logprobs of both below this count as this, at most 0; null: all count as they are. */
  minLogprob: number | null;
}

/** As a config has them. */
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
  /** Absent: 1. */
  weights?: Float32Array;
  offsets: Int32Array;
  columns: Record<string, Float32Array>;
}

/** Of each token. */
interface TeacherTerm {
  losses: Float64Array;
  /** d loss / d logprob. */
  gradients: Float64Array;
  /** The divergence, cut off, without the weight. */
  divergences: Float64Array;
}

/**
 * The term of a loss that draws the policy towards its teacher, token by token.
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
