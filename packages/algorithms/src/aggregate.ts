import { ConfigError, Registry } from "@cria/core";

export interface AggregateInputs {
  /** Tokens of the micro-batch's i-th sequence are `[offsets[i], offsets[i + 1])`. */
  offsets: Int32Array;
  /** Counts of the whole mini-batch: tokens in the loss, and sequences that have any. */
  totals: { tokens: number; sequences: number };
  /** Divisor of seq-mean-token-sum-norm: usually the longest response allowed. */
  lossScaleFactor: number | null;
  /**
   * If the sequences are branches of trajectories: for each token, the number of its trajectory's tokens in the
   * loss.
   */
  trajectoryTokens?: ArrayLike<number>;
}

/**
 * The weight of each token in the mini-batch's loss. It must not depend on how the mini-batch is split, and must be
 * equal for all tokens of a sequence.
 */
export type Aggregation = (inputs: AggregateInputs) => Float64Array;

/** Every token of the mini-batch counts the same. */
export const aggregateTokenMean: Aggregation = ({ offsets, totals }) =>
  weighTokens(offsets, () => 1 / Math.max(1, totals.tokens));

/** Sum over a sequence's tokens, mean over the sequences that have any. */
export const aggregateSeqMeanTokenSum: Aggregation = ({ offsets, totals }) =>
  weighTokens(offsets, () => 1 / Math.max(1, totals.sequences));

/** Mean over a sequence's tokens first, so that every sequence counts the same, whatever its length. */
export const aggregateSeqMeanTokenMean: Aggregation = ({ offsets, totals, trajectoryTokens }) =>
  weighTokens(offsets, (length, first) => 1 / ((trajectoryTokens?.[first] ?? length) * Math.max(1, totals.sequences)));

/** Sum over all tokens / lossScaleFactor / sequences: a constant instead of lengths (Dr. GRPO, arXiv:2503.20783). */
export const aggregateSeqMeanTokenSumNorm: Aggregation = ({ offsets, totals, lossScaleFactor }) => {
  if (!(lossScaleFactor && lossScaleFactor > 0)) {
    throw new ConfigError("needs a number to divide by", {
      code: "config/bad-value",
      subject: 'loss_agg_mode "seq-mean-token-sum-norm"',
      expected: "loss_scale_factor above 0",
      received: String(lossScaleFactor),
    });
  }
  return weighTokens(offsets, () => 1 / (lossScaleFactor * Math.max(1, totals.sequences)));
};

/** Sum over all tokens: the step's size grows with their number. */
export const aggregateTokenSum: Aggregation = ({ offsets }) => weighTokens(offsets, () => 1);

const builtIn = {
  "token-mean": aggregateTokenMean,
  "token-sum": aggregateTokenSum,
  "seq-mean-token-sum": aggregateSeqMeanTokenSum,
  "seq-mean-token-mean": aggregateSeqMeanTokenMean,
  "seq-mean-token-sum-norm": aggregateSeqMeanTokenSumNorm,
} satisfies Record<string, Aggregation>;

/** A built-in aggregation, or a name that was registered. */
export type AggregationName = keyof typeof builtIn | (string & {});

/** Named by `actor_rollout_ref.actor.loss_agg_mode`. */
export const aggregations = new Registry<Aggregation>("loss_agg_mode", builtIn, {
  alternative: "./module.ts#export",
});

function weighTokens(offsets: Int32Array, weightOf: (length: number, first: number) => number): Float64Array {
  const weights = new Float64Array(offsets.at(-1) ?? 0);
  for (let i = 0; i + 1 < offsets.length; i++)
    weights.fill(weightOf(offsets[i + 1]! - offsets[i]!, offsets[i]!), offsets[i]!, offsets[i + 1]!);
  return weights;
}
