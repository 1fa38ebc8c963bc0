import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { composePolicyLoss, estimateGrpo, maskedMean, maskedWhiten } from "./index.js";

/** Written by fixtures/make_reference.py. */
interface Reference {
  grpo: { rewards: number[]; groups: string[]; by_std: boolean; advantages: number[] }[];
  policy: {
    kl_type: string | null;
    kl_coef: number;
    entropy_coeff: number;
    clip_ratio_low: number;
    clip_ratio_high: number;
    clip_ratio_c: number;
    tokens: number;
    logprobs: number[];
    old_logprobs: number[];
    ref_logprobs: number[];
    advantages: number[];
    entropy_values: number[];
    loss: number;
    d_logprobs: number[];
    d_entropy: number[];
    metrics: Record<string, number>;
  }[];
  whiten: { values: number[]; mask: number[]; shift_mean: boolean; mean: number; whitened: number[] }[];
}

const reference: Reference = JSON.parse(
  readFileSync(join(import.meta.dirname, "..", "fixtures", "reference.json"), "utf8"),
);

function expectClose(actual: ArrayLike<number>, expected: readonly number[], tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i++)
    expect(Math.abs(actual[i]! - expected[i]!), `entry ${i}`).toBeLessThanOrEqual(
      tolerance * (1 + Math.abs(expected[i]!)),
    );
}

describe("values of an independent numpy reference", () => {
  it.each(reference.grpo)("grpo advantages, by_std $by_std", ({ rewards, groups, by_std, advantages }) => {
    expectClose(estimateGrpo({ rewards, groups, normalizeByStd: by_std }), advantages, 1e-5);
  });

  it.each(reference.policy)("policy loss with KL $kl_type and entropy $entropy_coeff", (c) => {
    const loss = composePolicyLoss({
      lossMode: "vanilla",
      lossAggMode: "token-mean",
      clipRatioLow: c.clip_ratio_low,
      clipRatioHigh: c.clip_ratio_high,
      clipRatioC: c.clip_ratio_c,
      entropyCoeff: c.entropy_coeff,
      kl: c.kl_type ? { coefficient: c.kl_coef, type: c.kl_type } : null,
    });
    const result = loss({
      sequenceIndices: Int32Array.of(0, 1),
      offsets: Int32Array.of(0, 10, c.logprobs.length),
      logprobs: Float32Array.from(c.logprobs),
      entropy: Float32Array.from(c.entropy_values),
      columns: {
        advantages: Float32Array.from(c.advantages),
        oldLogprobs: Float32Array.from(c.old_logprobs),
        refLogprobs: Float32Array.from(c.ref_logprobs),
      },
      totals: { tokens: c.tokens, sequences: 3 },
    });
    expect(result.loss).toBeCloseTo(c.loss, 6);
    expectClose(result.dLogprobs, c.d_logprobs, 1e-5);
    expectClose(result.dEntropy ?? new Float32Array(c.d_entropy.length), c.d_entropy, 1e-5);
    for (const [name, value] of Object.entries(c.metrics)) expect(result.metrics?.[name], name).toBeCloseTo(value, 6);
  });

  it.each(reference.whiten)(
    "masked whitening, shift_mean $shift_mean",
    ({ values, mask, shift_mean, mean, whitened }) => {
      expect(maskedMean(values, mask)).toBeCloseTo(mean, 6);
      expectClose(maskedWhiten(values, mask, shift_mean), whitened, 1e-5);
    },
  );
});
