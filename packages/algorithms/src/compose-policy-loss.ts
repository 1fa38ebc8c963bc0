import { ConfigError, DataError, type LossFunction } from "@cria/core";
import type { Aggregation, AggregationName } from "./aggregate.js";
import { type Algorithms, defaultAlgorithms } from "./algorithms.js";
import type { KlEstimate, KlName } from "./kl.js";
import type { PolicyLoss } from "./losses/policy-loss.js";
import { parameterDefaults, termDefaults } from "./losses/policy-loss-defaults.js";
import type { PolicyLossParameters, PolicyLossTerms } from "./losses/policy-loss-parameters.js";
import type { PolicyLossName } from "./losses/policy-losses.js";
import { addObservationTerm } from "./observation-term.js";
import { correctRollout, type RolloutCorrectionOptions } from "./rollout-correction.js";
import { makeTeacherTerm, type TeacherTermOptions } from "./teacher-term.js";

export interface PolicyLossOptions extends PolicyLossParameters, PolicyLossTerms {
  /** A policy loss, or the name of one. */
  lossMode: PolicyLossName | PolicyLoss;
  /**
   * An aggregation or the name of one, for entropy and KL, and for the policy loss unless that requires a specific one.
   */
  lossAggMode: AggregationName | Aggregation;
  /** null: no KL term; else the batch needs a column `refLogprobs`. */
  kl: { coefficient: number; type: KlName | KlEstimate } | null;
  /** null: there is no teacher; else the batch needs a column `teacherLogprobs`, or candidates with one. */
  teacher: TeacherTermOptions | null;
  /**
   * For batches whose `oldLogprobs` are the sampler's: weights and rejections of the current policy against the
   * sampler, computed in the loss. Rejected tokens have loss 0, but count in the denominators, because a micro-batch
   * does not know what others reject. null: the batch was corrected beforehand, or not at all.
   */
  currentCorrection: RolloutCorrectionOptions | null;
}

export const defaultPolicyLoss: PolicyLossOptions = {
  ...parameterDefaults,
  ...termDefaults,
  lossMode: "vanilla",
  lossAggMode: "token-mean",
  kl: null,
  teacher: null,
  currentCorrection: null,
};

/** Required parameters that are not set. */
export function listMissingParameters(
  { requires = [] }: PolicyLoss,
  given: PolicyLossParameters,
): (keyof PolicyLossParameters)[] {
  return requires.filter((name) => given[name] === null);
}

/** Column of `preparePolicyLoss`: the factor that brings weights of the current correction to a mean of 1. */
export const CURRENT_SCALE = "currentCorrectionScale";

/** True if the loss has a KL term that counts. A teacher that replaces the task's loss replaces this term too. */
export function usesReference({ kl, teacher }: Pick<PolicyLossOptions, "kl" | "teacher">): boolean {
  return kl !== null && (teacher === null || teacher.taskRewards);
}

/** True if trajectories without advantage have a gradient: through a term of the loss, or the policy loss itself. */
export function needsNoAdvantage(
  { kl, teacher, entropyCoeff, observationCoeff, lossMode }: PolicyLossOptions,
  { policyLosses }: Pick<Algorithms, "policyLosses">,
): boolean {
  return (
    kl !== null ||
    teacher !== null ||
    entropyCoeff !== 0 ||
    observationCoeff > 0 ||
    !policyLosses.resolve(lossMode).vanishesWithoutAdvantage
  );
}

/**
 * Policy loss - entropyCoeff * entropy + kl.coefficient * KL + teacher.coefficient * divergence from the teacher +
 * observationCoeff * cross-entropy of observations, as a loss for the engine's `train`. Columns of the batch:
 * `advantages`, `oldLogprobs`, `refLogprobs` for a KL term (`usesReference`), `teacherLogprobs` (with `forward_kl_topk`
 * a column of the candidates) and perhaps `teacherWeights` for a teacher, `observed` for observations
 * (`addObservationTerm`), `rolloutIsWeights` to weigh the policy loss of each token by a rollout correction, and those of
 * `preparePolicyLoss`.
 *
 * Each token's weight comes from the whole mini-batch's `totals` and from its own sequence, which is never cut: loss and
 * gradient add up over micro-batches. Metrics `pg_loss`, `entropy`, `kl_loss`, `teacher_loss` and `teacher_divergence` are
 * aggregated like their losses; those of the policy loss, and `teacher_mass` and `student_mass` of `forward_kl_topk`, are
 * means over the mini-batch's tokens. With `currentCorrection` also `rollout_corr/<name>`, those metrics of
 * `correctRollout` that are means over tokens or over sequences.
 * @param algorithms registries that resolve names.
 * @throws ConfigError for an unknown name, or a required parameter that is not set.
 */
export function composePolicyLoss(options: PolicyLossOptions, algorithms = defaultAlgorithms): LossFunction {
  const { policyLosses, aggregations, klEstimates } = algorithms;
  const policyLoss = policyLosses.resolve(options.lossMode);
  const [missing] = listMissingParameters(policyLoss, options);
  if (missing !== undefined) {
    throw new ConfigError("is missing", {
      code: "config/bad-value",
      subject: `${typeof options.lossMode === "string" ? `loss "${options.lossMode}"` : "loss"}: ${missing}`,
      expected: "a value: the loss has no default for it",
      received: "null",
    });
  }
  const aggregate = aggregations.resolve(options.lossAggMode);
  const aggregatePolicy = policyLoss.aggregation ? aggregations.get(policyLoss.aggregation) : aggregate;
  const estimateKl = options.kl && usesReference(options) ? klEstimates.resolve(options.kl.type) : null;
  const { teacher, lossScaleFactor, currentCorrection } = options;
  const evaluateTeacher = teacher ? makeTeacherTerm(teacher, options, algorithms) : null;
  const isTaught = teacher === null || teacher.taskRewards;
  const teacherCoefficient = teacher?.taskRewards ? teacher.coefficient : 1;
  const entropyCoeff = isTaught ? options.entropyCoeff : 0;
  const klCoefficient = options.kl?.coefficient ?? 0;
  const compute: LossFunction = ({ logprobs, entropy, columns, candidates, offsets, totals }) => {
    const oldLogprobs = readColumn(columns, "oldLogprobs");
    const advantages = readColumn(columns, "advantages");
    const refLogprobs = estimateKl ? readColumn(columns, "refLogprobs") : null;
    const token = policyLoss.evaluate({ logprobs, oldLogprobs, advantages, offsets, columns }, options);
    const taught = evaluateTeacher?.({ logprobs, oldLogprobs, offsets, columns, candidates });
    const whole = { offsets, totals, lossScaleFactor, trajectoryTokens: columns.trajectoryTokens };
    const weights = aggregate(whole);
    const policyWeights = policyLoss.aggregation ? aggregatePolicy(whole) : weights;
    const current = currentCorrection
      ? correctNow({ oldLogprobs: logprobs, rolloutLogprobs: oldLogprobs, offsets }, currentCorrection, columns)
      : null;
    const given = current?.weights ?? columns.rolloutIsWeights;
    const corrections = given && policyLoss.correction === "sequence" ? averageGeometrically(given, offsets) : given;
    const n = logprobs.length;
    const dLogprobs = new Float32Array(n);
    const dEntropy = new Float32Array(n);
    const ofCandidates = taught?.candidateGradients;
    const dCandidates = ofCandidates ? new Float32Array(ofCandidates.length) : undefined;
    const sums: Record<string, number> = { pg_loss: 0, entropy: 0 };
    if (estimateKl) sums.kl_loss = 0;
    if (taught) Object.assign(sums, { teacher_loss: 0, teacher_divergence: 0 });
    for (let i = 0; i < n; i++) {
      const policyWeight = policyWeights[i]! * (corrections?.[i] ?? 1) * (current?.lossMask[i] ?? 1);
      let gradient = isTaught ? policyWeight * token.gradients[i]! : 0;
      sums.pg_loss! += policyWeight * token.losses[i]!;
      sums.entropy! += weights[i]! * entropy[i]!;
      if (estimateKl) {
        const kl = estimateKl(logprobs[i]! - refLogprobs![i]!);
        sums.kl_loss! += weights[i]! * kl.value;
        gradient += weights[i]! * klCoefficient * kl.gradient;
      }
      if (taught) {
        const correction = teacher!.policyGradient ? (given?.[i] ?? 1) : 1;
        const weight = weights[i]! * correction * (current?.lossMask[i] ?? 1);
        sums.teacher_loss! += weight * taught.losses[i]!;
        sums.teacher_divergence! += weights[i]! * taught.divergences[i]!;
        gradient += weight * teacherCoefficient * taught.gradients[i]!;
        if (dCandidates)
          for (let k = i * candidates!.count; k < (i + 1) * candidates!.count; k++)
            dCandidates[k] = weight * teacherCoefficient * ofCandidates![k]!;
      }
      dLogprobs[i] = gradient;
      dEntropy[i] = -entropyCoeff * weights[i]!;
    }
    const average = (values: Float64Array) =>
      values.reduce((sum, value) => sum + value, 0) / Math.max(1, totals.tokens);
    for (const [name, values] of Object.entries(token.metrics)) sums[name] = average(values);
    if (taught?.mass)
      Object.assign(sums, { teacher_mass: average(taught.mass.teacher), student_mass: average(taught.mass.policy) });
    if (current) Object.assign(sums, shareMetrics(current.metrics, offsets, totals));
    const ofTask =
      (isTaught ? sums.pg_loss! : 0) - entropyCoeff * sums.entropy! + (estimateKl ? klCoefficient * sums.kl_loss! : 0);
    const loss = taught ? ofTask + teacherCoefficient * sums.teacher_loss! : ofTask;
    return { loss, dLogprobs, dEntropy: entropyCoeff !== 0 ? dEntropy : undefined, dCandidates, metrics: sums };
  };
  return options.observationCoeff === 0 ? compute : addObservationTerm(compute, options.observationCoeff);
}

/** @throws DataError that names the column. */
function readColumn(columns: Record<string, Float32Array>, name: string): Float32Array {
  const column = columns[name];
  if (column) return column;
  throw new DataError("is missing from the batch", {
    code: "data/missing-column",
    subject: `column ${name}`,
    expected: "one value for each token",
    received: Object.keys(columns).join(", ") || "no columns",
  });
}

/** The geometric mean of a sequence's weights, on each of its tokens; 0 if one weight is 0. */
function averageGeometrically(weights: Float32Array, offsets: Int32Array): Float64Array {
  const means = new Float64Array(weights.length);
  for (let s = 0; s + 1 < offsets.length; s++) {
    const [from, to] = [offsets[s]!, offsets[s + 1]!];
    let sum = 0;
    for (let i = from; i < to; i++) sum += Math.log(weights[i]!);
    means.fill(Math.exp(sum / (to - from)), from, to);
  }
  return means;
}

/** The correction of a micro-batch whose tokens are all in the loss. Normalises its weights by the prepared factor. */
function correctNow(
  tokens: { oldLogprobs: Float32Array; rolloutLogprobs: Float32Array; offsets: Int32Array },
  options: RolloutCorrectionOptions,
  columns: Record<string, Float32Array>,
) {
  const responseMask = new Uint8Array(tokens.oldLogprobs.length).fill(1);
  const result = correctRollout({ ...tokens, responseMask }, { ...options, rolloutIsBatchNormalize: false });
  if (!options.rolloutIsBatchNormalize || !result.weights) return result;
  const scale = readColumn(columns, CURRENT_SCALE);
  return { ...result, weights: result.weights.map((weight, i) => weight * scale[i]!) };
}

const tokenMeans = ["kl", "k3_kl", "chi2_token", "rollout_is_mean", "rollout_rs_masked_fraction"].concat([
  "rollout_is_ratio_fraction_high",
  "rollout_is_ratio_fraction_low",
  "rollout_is_catastrophic_token_fraction",
]);
const sequenceMeans = ["training_ppl", "training_log_ppl", "rollout_ppl", "rollout_log_ppl", "log_ppl_diff"].concat(
  ["log_ppl_abs_diff", "ppl_ratio", "chi2_seq", "rollout_is_seq_mean", "rollout_is_seq_fraction_high"],
  ["rollout_is_seq_fraction_low", "rollout_rs_seq_masked_fraction", "rollout_is_veto_fraction"],
);

/** This micro-batch's share of the mini-batch's means; extremes and spreads are not additive. */
function shareMetrics(
  metrics: Record<string, number>,
  offsets: Int32Array,
  totals: { tokens: number; sequences: number },
): Record<string, number> {
  const shares: Record<string, number> = {};
  const add = (names: readonly string[], share: number) => {
    for (const name of names) if (metrics[name] !== undefined) shares[`rollout_corr/${name}`] = metrics[name] * share;
  };
  add(tokenMeans, (offsets.at(-1) ?? 0) / Math.max(1, totals.tokens));
  add(sequenceMeans, (offsets.length - 1) / Math.max(1, totals.sequences));
  return shares;
}
