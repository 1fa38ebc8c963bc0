import type { ValueLossFunction } from "@cria/core";
import { type Aggregation, aggregations } from "./aggregate.js";

export interface ValueLossOptions {
  /** Largest change of a value from the old one before its gradient stops, above 0. */
  cliprangeValue: number;
  /** An aggregation, or the name of one. */
  lossAggMode: string | Aggregation;
  lossScaleFactor: number | null;
}

export const defaultValueLoss: ValueLossOptions = {
  cliprangeValue: 0.5,
  lossAggMode: "token-mean",
  lossScaleFactor: null,
};

/**
 * Clipped value loss (Schulman et al. 2015, arXiv:1506.02438, with PPO's clip): half of max((v - R)^2, (clip(v, vOld -
 * range, vOld + range) - R)^2), aggregated like a policy loss. `vf_clipfrac` is the share of tokens whose clipped term
 * is larger, `vpred_mean` the mean value. Columns: `oldValues` (before the update) and `returns`.
 * @throws ConfigError for an unknown aggregation.
 */
export function composeValueLoss(options: ValueLossOptions = defaultValueLoss): ValueLossFunction {
  const aggregate = aggregations.resolve(options.lossAggMode);
  const { cliprangeValue: range, lossScaleFactor } = options;
  return ({ offsets, values, columns, totals }) => {
    const oldValues = columns.oldValues!;
    const returns = columns.returns!;
    const weights = aggregate({ offsets, totals, lossScaleFactor, trajectoryTokens: columns.trajectoryTokens });
    const dValues = new Float32Array(values.length);
    let loss = 0;
    let clippedTokens = 0;
    let sum = 0;
    for (let i = 0; i < values.length; i++) {
      const clipped = Math.max(oldValues[i]! - range, Math.min(oldValues[i]! + range, values[i]!));
      const error = values[i]! - returns[i]!;
      const clippedError = clipped - returns[i]!;
      const isClipped = clippedError ** 2 > error ** 2;
      loss += (weights[i]! * (isClipped ? clippedError ** 2 : error ** 2)) / 2;
      // A clipped value does not depend on v.
      dValues[i] = isClipped ? 0 : weights[i]! * error;
      if (isClipped) clippedTokens++;
      sum += values[i]!;
    }
    const tokens = Math.max(1, totals.tokens);
    const metrics = { vf_loss: loss, vf_clipfrac: clippedTokens / tokens, vpred_mean: sum / tokens };
    return { loss, dValues, metrics };
  };
}
