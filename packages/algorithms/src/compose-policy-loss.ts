import type { LossFunction } from "@cria/core";
import { aggregations } from "./aggregate.js";
import { klEstimates } from "./kl.js";
import { type ClipOptions, policyLosses } from "./token-loss.js";

export interface PolicyLossOptions extends ClipOptions {
  /** Name of a policy loss. */
  lossMode: string;
  /** Name of an aggregation. */
  lossAggMode: string;
  /** The entropy's share is subtracted: positive values keep the policy random. */
  entropyCoeff: number;
  /** null: no KL term; else the batch needs a column `refLogprobs`. */
  kl: { coefficient: number; type: string } | null;
}

export const defaultPolicyLoss: PolicyLossOptions = {
  lossMode: "vanilla",
  lossAggMode: "token-mean",
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  clipRatioC: 3,
  entropyCoeff: 0,
  kl: null,
};

/**
 * Policy loss - entropyCoeff * entropy + kl.coefficient * KL, as the engine's `train` takes it. Columns of the batch:
 * `advantages`, `oldLogprobs`, and `refLogprobs` for a KL term.
 */
export function composePolicyLoss(options: PolicyLossOptions): LossFunction {
  const policyLoss = policyLosses.get(options.lossMode);
  const aggregate = aggregations.get(options.lossAggMode);
  const estimateKl = options.kl ? klEstimates.get(options.kl.type) : null;
  return ({ logprobs, entropy, columns, offsets, totals }) => {
    const token = policyLoss({ logprobs, oldLogprobs: columns.oldLogprobs!, advantages: columns.advantages! }, options);
    const weights = aggregate({ offsets, totals });
    const n = logprobs.length;
    const dLogprobs = new Float32Array(n);
    const dEntropy = new Float32Array(n);
    const sums: Record<string, number> = { pg_loss: 0, entropy: 0 };
    if (estimateKl) sums.kl_loss = 0;
    for (let i = 0; i < n; i++) {
      const weight = weights[i]!;
      let gradient = token.gradients[i]!;
      sums.pg_loss! += weight * token.losses[i]!;
      sums.entropy! += weight * entropy[i]!;
      if (estimateKl) {
        const kl = estimateKl(logprobs[i]! - columns.refLogprobs![i]!);
        sums.kl_loss! += weight * kl.value;
        gradient += options.kl!.coefficient * kl.gradient;
      }
      dLogprobs[i] = weight * gradient;
      dEntropy[i] = -options.entropyCoeff * weight;
    }
    for (const [name, values] of Object.entries(token.metrics)) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += weights[i]! * values[i]!;
      sums[name] = sum;
    }
    const loss =
      sums.pg_loss! - options.entropyCoeff * sums.entropy! + (options.kl ? options.kl.coefficient * sums.kl_loss! : 0);
    return { loss, dLogprobs, dEntropy: options.entropyCoeff !== 0 ? dEntropy : undefined, metrics: sums };
  };
}
