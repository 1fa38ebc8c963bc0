import { ConfigError } from "@cria/core";
import type { Algorithms } from "./algorithms.js";
import type { KlEstimate, KlName } from "./kl.js";
import type { PolicyLoss } from "./losses/policy-loss.js";
import type { PolicyLossParameters } from "./losses/policy-loss-parameters.js";
import type { PolicyLossName } from "./losses/policy-losses.js";
import type { TeacherTermValues } from "./teacher-term-options.js";

/**
 * Options of learning from a teacher's logprobs of the policy's own tokens: on-policy distillation (arXiv:2306.13649). Names may be given as
 * the functions that they stand for.
 */
export interface TeacherTermOptions extends Omit<TeacherTermValues, "estimate" | "lossMode"> {
  estimate: KlName | KlEstimate;
  lossMode: PolicyLossName | PolicyLoss;
}

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
 * Resolves the names in a teacher's options.
 * @param nameOption names an option in errors; default: as an option of a loss.
 * @returns `policyLoss` is null without `policyGradient`.
 * @throws ConfigError for an unknown name, or a loss of `policyGradient` that needs a whole mini-batch.
 */
export function resolveTeacherTerm(
  { estimate, lossMode, policyGradient }: Pick<TeacherTermOptions, "estimate" | "lossMode" | "policyGradient">,
  { klEstimates, policyLosses }: Pick<Algorithms, "klEstimates" | "policyLosses">,
  nameOption = (option: "estimate" | "lossMode") => `teacher: ${option}`,
): { estimate: KlEstimate; policyLoss: PolicyLoss | null } {
  // Modules of users are loaded for the keys of the actor alone.
  const nameIn = (option: "estimate" | "lossMode") => ({ subject: nameOption(option), alternative: undefined });
  const resolved = klEstimates.resolve(estimate, nameIn("estimate"));
  if (!policyGradient) return { estimate: resolved, policyLoss: null };
  const policyLoss = policyLosses.resolve(lossMode, nameIn("lossMode"));
  if (policyLoss.prepare) {
    throw new ConfigError("needs statistics of the whole mini-batch", {
      code: "config/bad-value",
      subject: nameOption("lossMode"),
      expected: "a loss of single tokens or sequences: vanilla",
      received: typeof lossMode === "string" ? lossMode : "a loss with prepare",
    });
  }
  return { estimate: resolved, policyLoss };
}

/**
 * Makes the loss term that moves the policy towards its teacher, token by token.
 * @throws ConfigError as `resolveTeacherTerm`.
 */
export function makeTeacherTerm(
  options: TeacherTermOptions,
  parameters: PolicyLossParameters,
  algorithms: Pick<Algorithms, "klEstimates" | "policyLosses">,
): (tokens: TeacherTokens) => TeacherTerm {
  const { maxLoss, clipRatioLow, clipRatioHigh } = options;
  const { estimate, policyLoss } = resolveTeacherTerm(options, algorithms);
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
