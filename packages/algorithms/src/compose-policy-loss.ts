import { DataError, type LossFunction } from "@cria/core";
import { aggregations } from "./aggregate.js";
import { klEstimates } from "./kl.js";
import type { PolicyLossParameters } from "./losses/policy-loss.js";
import { policyLosses } from "./losses/policy-losses.js";

export interface PolicyLossOptions extends PolicyLossParameters {
  /** Name of a policy loss. */
  lossMode: string;
  /** Name of an aggregation: of entropy and KL, and of the policy loss unless that has one of its own. */
  lossAggMode: string;
  /** Divisor of seq-mean-token-sum-norm; null for the others. */
  lossScaleFactor: number | null;
  /** The entropy's share is subtracted: positive values keep the policy random. */
  entropyCoeff: number;
  /** null: no KL term; else the batch needs a column `refLogprobs`. */
  kl: { coefficient: number; type: string } | null;
}

export const defaultPolicyLoss: PolicyLossOptions = {
  lossMode: "vanilla",
  lossAggMode: "token-mean",
  lossScaleFactor: null,
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  clipRatioC: 3,
  clipCovRatio: 2e-4,
  clipCovLb: 1,
  clipCovUb: 5,
  klCovRatio: 2e-4,
  ppoKlCoef: 1,
  tauPos: 1,
  tauNeg: 1,
  entropyCoeff: 0,
  kl: null,
};

/**
 * Policy loss - entropyCoeff * entropy + kl.coefficient * KL, as the engine's `train` takes it. Columns of the batch:
 * `advantages`, `oldLogprobs`, `refLogprobs` for a KL term, `rolloutIsWeights` to weigh the policy loss of each token by
 * a rollout correction, and those of `preparePolicyLoss`.
 *
 * Each token's weight comes from the whole mini-batch's `totals` and from its own sequence, which is never cut: loss and
 * gradient add up over micro-batches. Metrics `pg_loss`, `entropy` and `kl_loss` are aggregated like their losses; those
 * of the policy loss are means over the mini-batch's tokens.
 * @throws ConfigError for an unknown name.
 */
export function composePolicyLoss(options: PolicyLossOptions): LossFunction {
  const policyLoss = policyLosses.get(options.lossMode);
  const aggregate = aggregations.get(options.lossAggMode);
  const aggregatePolicy = policyLoss.aggregation ? aggregations.get(policyLoss.aggregation) : aggregate;
  const estimateKl = options.kl ? klEstimates.get(options.kl.type) : null;
  const { entropyCoeff, lossScaleFactor } = options;
  return ({ logprobs, entropy, columns, offsets, totals }) => {
    const oldLogprobs = readColumn(columns, "oldLogprobs");
    const advantages = readColumn(columns, "advantages");
    const refLogprobs = estimateKl ? readColumn(columns, "refLogprobs") : null;
    const token = policyLoss.evaluate({ logprobs, oldLogprobs, advantages, offsets, columns }, options);
    const weights = aggregate({ offsets, totals, lossScaleFactor });
    const policyWeights = policyLoss.aggregation ? aggregatePolicy({ offsets, totals, lossScaleFactor }) : weights;
    const corrections =
      columns.rolloutIsWeights && policyLoss.correction === "sequence"
        ? averageGeometrically(columns.rolloutIsWeights, offsets)
        : columns.rolloutIsWeights;
    const n = logprobs.length;
    const dLogprobs = new Float32Array(n);
    const dEntropy = new Float32Array(n);
    const sums: Record<string, number> = { pg_loss: 0, entropy: 0 };
    if (estimateKl) sums.kl_loss = 0;
    for (let i = 0; i < n; i++) {
      const policyWeight = policyWeights[i]! * (corrections?.[i] ?? 1);
      let gradient = policyWeight * token.gradients[i]!;
      sums.pg_loss! += policyWeight * token.losses[i]!;
      sums.entropy! += weights[i]! * entropy[i]!;
      if (estimateKl) {
        const kl = estimateKl(logprobs[i]! - refLogprobs![i]!);
        sums.kl_loss! += weights[i]! * kl.value;
        gradient += weights[i]! * options.kl!.coefficient * kl.gradient;
      }
      dLogprobs[i] = gradient;
      dEntropy[i] = -entropyCoeff * weights[i]!;
    }
    for (const [name, values] of Object.entries(token.metrics))
      sums[name] = values.reduce((sum, value) => sum + value, 0) / Math.max(1, totals.tokens);
    const loss =
      sums.pg_loss! - entropyCoeff * sums.entropy! + (options.kl ? options.kl.coefficient * sums.kl_loss! : 0);
    return { loss, dLogprobs, dEntropy: entropyCoeff !== 0 ? dEntropy : undefined, metrics: sums };
  };
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

/** On every token, the geometric mean of its sequence's weights; 0 where one of them is. */
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
