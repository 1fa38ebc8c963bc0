import { ConfigError, DataError, type LossFunction, type LossInputs, type LossTotals } from "@cria/core";
import { type Algorithms, defaultAlgorithms } from "./algorithms.js";
import type { PolicyLoss } from "./losses/policy-loss.js";
import type { PolicyLossParameters } from "./losses/policy-loss-parameters.js";
import type { PolicyLossOptions } from "./policy-loss-options.js";
import { GradientSum } from "./terms/gradient-sum.js";
import { type ListedTerm, listTerms } from "./terms/list-terms.js";
import { nameWeights } from "./terms/loss-term.js";
import { TokenSelections } from "./terms/select-tokens.js";

/** Required parameters that are not set. */
export function listMissingParameters(
  { requires = [] }: PolicyLoss,
  given: PolicyLossParameters,
): (keyof PolicyLossParameters)[] {
  return requires.filter((name) => given[name] === null);
}

/** True if the loss has a KL term that counts. A teacher that replaces the task's loss replaces this term too. */
export function usesReference({ kl, teacher }: Pick<PolicyLossOptions, "kl" | "teacher">): boolean {
  return kl !== null && (teacher === null || teacher.taskRewards);
}

/** True if trajectories without advantage have a gradient: through a term of the loss, or the policy loss itself. */
export function needsNoAdvantage(
  { kl, teacher, entropyCoeff, observationCoeff, lossMode, terms }: PolicyLossOptions,
  { policyLosses }: Pick<Algorithms, "policyLosses">,
): boolean {
  return (
    kl !== null ||
    teacher !== null ||
    entropyCoeff !== 0 ||
    observationCoeff > 0 ||
    Object.keys(terms).length > 0 ||
    !policyLosses.resolve(lossMode).vanishesWithoutAdvantage
  );
}

/**
 * The sum of a loss's terms, as a loss for the engine's `train`:
 * policy loss - entropyCoeff * entropy + kl.coefficient * KL + teacher.coefficient * divergence from the teacher +
 * observationCoeff * cross-entropy of observations + demonstrationCoeff * cross-entropy of demonstrations + own terms.
 *
 * Columns of the batch: `advantages`, `oldLogprobs`, `refLogprobs` for a KL term (`usesReference`), `teacherLogprobs`
 * (with `forward_kl_topk` a column of the candidates) and perhaps `teacherWeights` for a teacher, `rolloutIsWeights` to
 * weigh the policy loss of each token by a rollout correction, those of `preparePolicyLoss`; `tokenKind` for tokens that
 * were not sampled, and `weight/<term>` for rows that weigh less or more in a term, or nothing with 0.
 *
 * Each token's weight comes from the whole mini-batch's `totals` (for a term, those of `totals.terms`) and from its own
 * sequence, which is never cut: loss and gradient add up over micro-batches. Metrics `pg_loss`, `entropy`, `kl_loss`,
 * `teacher_loss`, `teacher_divergence`, `observation_loss`, `demonstration_loss` and `loss_terms/<name>` are aggregated
 * like their losses; those of the policy loss, and `teacher_mass` and `student_mass` of `forward_kl_topk`, are means
 * over the term's tokens. With `currentCorrection` also `rollout_corr/<name>`, those metrics of `correctRollout` that
 * are means over tokens or over sequences.
 * @param algorithms registries that resolve names.
 * @throws ConfigError for an unknown name, a required parameter that is not set, or an own term that returns values
 * which a loss cannot have.
 */
export function composePolicyLoss(options: PolicyLossOptions, algorithms = defaultAlgorithms): LossFunction {
  checkParameters(options, algorithms);
  const terms = listTerms(options, algorithms);
  return (inputs) => {
    const selections = new TokenSelections(inputs);
    const gradient = new GradientSum(inputs);
    const losses: Record<string, number> = {};
    const metrics: Record<string, number> = {};
    let loss = 0;
    for (const listed of terms) {
      const { name, metric, coefficient, term } = listed;
      const selection = selections.of(name, term.tokens ?? "sampled");
      losses[metric] = 0;
      if (selection.inputs.logprobs.length === 0) continue;
      const shown = { ...selection.inputs, totals: readTotals(listed, inputs) };
      const values = term.evaluate(shown, options);
      const { offsets, totals, columns } = shown;
      const { lossScaleFactor } = options;
      const ofRows = columns[nameWeights(name)];
      const plain = listed.aggregate({ offsets, totals, lossScaleFactor, trajectoryTokens: columns.trajectoryTokens });
      const weights = ofRows ? plain.map((weight, i) => weight * ofRows[i]!) : plain;
      const { factors } = values;
      const scaled = factors ? weights.map((weight, i) => weight * factors[i]!) : weights;
      losses[metric] = weigh(scaled, values.losses);
      for (const [key, of] of Object.entries(values.aggregated ?? {})) losses[key] = weigh(weights, of);
      for (const [key, of] of Object.entries(values.metrics ?? {})) metrics[key] = sum(of) / Math.max(1, totals.tokens);
      Object.assign(metrics, values.shares);
      if (coefficient === 0) continue;
      loss += coefficient * losses[metric];
      gradient.add(selection, values, scaled, coefficient);
    }
    return { loss, ...gradient.round(), metrics: { ...losses, ...metrics } };
  };
}

/** @throws ConfigError for a required parameter of the policy loss that is not set. */
function checkParameters(options: PolicyLossOptions, { policyLosses }: Algorithms): void {
  const [missing] = listMissingParameters(policyLosses.resolve(options.lossMode), options);
  if (missing === undefined) return;
  throw new ConfigError("is missing", {
    code: "config/bad-value",
    subject: `${typeof options.lossMode === "string" ? `loss "${options.lossMode}"` : "loss"}: ${missing}`,
    expected: "a value: the loss has no default for it",
    received: "null",
  });
}

/**
 * Counts of the mini-batch's tokens that a term sees; of sampled tokens in the whole mini-batch by default.
 * @throws DataError for a term of other tokens without counts.
 */
function readTotals({ name, term }: ListedTerm, { totals }: LossInputs): LossTotals {
  const own = totals.terms?.[name];
  if (own) return own;
  if (term.tokens === undefined || term.tokens === "sampled") return totals;
  throw new DataError("is missing from the totals of the batch", {
    code: "data/missing-total",
    subject: `totals.terms.${name}`,
    expected: "the numbers of tokens and sequences that the term sees in the mini-batch",
    received: Object.keys(totals.terms ?? totals).join(", "),
  });
}

function weigh(weights: ArrayLike<number>, values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < weights.length; i++) total += weights[i]! * values[i]!;
  return total;
}

function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}
