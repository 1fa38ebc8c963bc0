import { ConfigError, DataError, type LossInputs } from "@cria/core";
import type { Algorithms } from "./algorithms.js";
import { type CandidateMass, compareLikeliest, FORWARD_KL_TOPK } from "./forward-kl-topk.js";
import type { KlEstimate, KlName } from "./kl.js";
import type { PolicyLoss } from "./losses/policy-loss.js";
import type { PolicyLossParameters } from "./losses/policy-loss-parameters.js";
import type { PolicyLossName } from "./losses/policy-losses.js";
import type { TeacherTermValues } from "./teacher-term-options.js";
import { multiplyCorrections, type TokenCorrections } from "./terms/current-correction.js";
import type { LossTerm, LossTermValues } from "./terms/loss-term.js";
import { readColumn } from "./terms/read-column.js";

/**
 * Options of learning from a teacher's logprobs of the policy's own tokens: on-policy distillation (arXiv:2306.13649). Names may be given as
 * the functions that they stand for.
 */
export interface TeacherTermOptions extends Omit<TeacherTermValues, "estimate" | "lossMode"> {
  /** "forward_kl_topk" compares the teacher's `topk` likeliest tokens in place of the policy's own one. */
  estimate: KlName | KlEstimate;
  lossMode: PolicyLossName | PolicyLoss;
}

/** Columns of the teacher: its logprobs, of tokens or of candidates, and the weight of each token (absent: 1). */
export const TEACHER_LOGPROBS = "teacherLogprobs";
export const TEACHER_WEIGHTS = "teacherWeights";

/** The divergence from the teacher at each token. */
interface Divergence {
  /** The clamped divergence. */
  divergences: Float64Array;
  /** d divergence / d logprob. */
  gradients: Float64Array;
  /** d divergence / d logprob of each candidate; null: it has no such gradient. */
  candidateGradients: Float64Array | null;
  /** Null for estimates. */
  mass: CandidateMass | null;
}

/** Number of the teacher's likeliest tokens that a loss compares at each token; 0: it reads its logprob of the token. */
export function countLikeliest(teacher: Pick<TeacherTermOptions, "estimate" | "topk"> | null): number {
  return teacher?.estimate === FORWARD_KL_TOPK ? teacher.topk : 0;
}

/**
 * Resolves the names in a teacher's options.
 * @param nameOption names an option in errors; default: as an option of a loss.
 * @returns `estimate` is null for "forward_kl_topk", `policyLoss` is null without `policyGradient`.
 * @throws ConfigError for an unknown name, or a loss of `policyGradient` that needs a whole mini-batch.
 */
export function resolveTeacherTerm(
  { estimate, lossMode, policyGradient }: Pick<TeacherTermOptions, "estimate" | "lossMode" | "policyGradient">,
  { klEstimates, policyLosses }: Pick<Algorithms, "klEstimates" | "policyLosses">,
  nameOption = (option: "estimate" | "lossMode") => `teacher: ${option}`,
): { estimate: KlEstimate | null; policyLoss: PolicyLoss | null } {
  // Modules of users are loaded for the keys of the actor alone.
  const resolved =
    estimate === FORWARD_KL_TOPK
      ? null
      : klEstimates.resolve(estimate, { subject: nameOption("estimate"), alternative: FORWARD_KL_TOPK });
  if (!policyGradient) return { estimate: resolved, policyLoss: null };
  const policyLoss = policyLosses.resolve(lossMode, { subject: nameOption("lossMode"), alternative: undefined });
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
 * Makes the loss term that moves the policy towards its teacher, token by token. Columns: `teacherLogprobs` for an
 * estimate, or candidates with them; perhaps `teacherWeights`.
 * @param correct importance weights and rejections; the weights count for `policyGradient` alone.
 * @throws ConfigError as `resolveTeacherTerm`.
 */
export function makeTeacherTerm(
  options: TeacherTermOptions,
  algorithms: Pick<Algorithms, "klEstimates" | "policyLosses">,
  correct: (inputs: LossInputs) => TokenCorrections,
): LossTerm {
  const { clipRatioLow, clipRatioHigh } = options;
  const { estimate, policyLoss } = resolveTeacherTerm(options, algorithms);
  const evaluate = (inputs: LossInputs, parameters: PolicyLossParameters): LossTermValues => {
    const { logprobs, offsets, columns, candidates } = inputs;
    const { divergences, gradients, candidateGradients, mass } = estimate
      ? estimateTokens(inputs, estimate, options)
      : compareCandidates(inputs, options);
    const weights = columns[TEACHER_WEIGHTS];
    const scale = (values: Float64Array, width = 1) =>
      weights ? values.map((value, i) => value * weights[Math.floor(i / width)]!) : values;
    const measured = {
      aggregated: { teacher_divergence: divergences },
      ...(mass ? { metrics: { teacher_mass: mass.teacher, student_mass: mass.policy } } : {}),
    };
    const { weights: corrections, lossMask } = correct(inputs);
    if (!policyLoss)
      return {
        ...measured,
        losses: scale(divergences),
        gradients: scale(gradients),
        ...(candidateGradients ? { candidateGradients: scale(candidateGradients, candidates!.count) } : {}),
        ...(lossMask ? { factors: lossMask } : {}),
      };
    const advantages = Float32Array.from(scale(divergences), (value) => -value);
    const oldLogprobs = readColumn(columns, "oldLogprobs");
    const tokens = policyLoss.evaluate(
      { logprobs, oldLogprobs, advantages, offsets, columns },
      { ...parameters, clipRatioLow, clipRatioHigh },
    );
    const factors = multiplyCorrections({ weights: corrections, lossMask }, logprobs.length);
    return { ...measured, losses: tokens.losses, gradients: tokens.gradients, ...(factors ? { factors } : {}) };
  };
  return { evaluate };
}

/** The divergence at each token by an estimate from the policy's own token. */
function estimateTokens(
  { logprobs, columns }: LossInputs,
  estimate: KlEstimate,
  { maxLoss, minLogprob }: TeacherTermOptions,
): Divergence {
  const least = minLogprob ?? Number.NEGATIVE_INFINITY;
  const teacherLogprobs = readColumn(columns, TEACHER_LOGPROBS);
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
  return { divergences, gradients, candidateGradients: null, mass: null };
}

/** The divergence at each token over the teacher's likeliest tokens. */
function compareCandidates({ logprobs, columns, candidates }: LossInputs, options: TeacherTermOptions): Divergence {
  const teacherLogprobs = candidates?.columns[TEACHER_LOGPROBS];
  if (!candidates || !teacherLogprobs) {
    throw new DataError("is missing from the batch", {
      code: "data/missing-column",
      subject: `candidates with a column ${TEACHER_LOGPROBS}`,
      expected: "one value for each token that the teacher scored",
      received: Object.keys(candidates?.columns ?? columns).join(", ") || "no columns",
    });
  }
  const { divergences, gradients, mass } = compareLikeliest(candidates, teacherLogprobs, options);
  return { divergences, gradients: new Float64Array(logprobs.length), candidateGradients: gradients, mass };
}
