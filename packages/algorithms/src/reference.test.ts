import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  advantageEstimators,
  composePolicyLoss,
  composeValueLoss,
  correctRollout,
  KlController,
  maskedMean,
  maskedWhiten,
  type PolicyLossOptions,
  parseRejectionRules,
  penalizeRewards,
  policyLosses,
  type RewardPart,
} from "./index.js";

/** Values that the scripts in fixtures/ gave: numpy and PyTorch in double precision, from the formulas. */
const read = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, "..", "fixtures", `${name}.json`), "utf8"));

interface AdvantageCase {
  name: string;
  gamma: number;
  lam: number;
  by_std: boolean;
  width: number;
  groups: string[];
  mask: number[];
  rewards: number[];
  values: number[];
  baselines: number[];
  advantages: number[];
  returns: number[];
  explained: number | null;
  parts?: RewardPart[];
  old_logprobs?: number[];
  sum_pi_squared?: number[];
  is_weights?: number[] | null;
}

interface PolicyLossCase {
  mode: string;
  agg: string;
  kl_type: string | null;
  kl_coef: number;
  entropy_coeff: number;
  parameters: Record<string, number>;
  loss_scale_factor: number;
  lengths: number[];
  logprobs: number[];
  old_logprobs: number[];
  ref_logprobs: number[];
  advantages: number[];
  entropy_values: number[];
  is_weights: number[] | null;
  loss: number;
  d_logprobs: number[];
  d_entropy: number[];
  metrics: Record<string, number>;
}

interface TrainingTerms {
  whiten: { values: number[]; mask: number[]; shift_mean: boolean; mean: number; whitened: number[] }[];
  value_loss: {
    agg: string;
    lengths: number[];
    values: number[];
    old_values: number[];
    returns: number[];
    loss: number;
    d_values: number[];
    clipfrac: number;
  }[];
  rollout_correction: {
    rollout_is: "token" | "sequence" | null;
    /** Two numbers are IcePop's bounds. */
    rollout_is_threshold: number | [number, number];
    /** rollout_rs, rollout_rs_threshold, rollout_rs_threshold_lower. */
    config: [string | null, number | string | null, number | null];
    width: number;
    mask: number[];
    rollout_logprobs: number[];
    old_logprobs: number[];
    weights: number[] | null;
    kept: number[];
    metrics: Record<string, number>;
  }[];
  kl_in_reward: {
    type: string;
    coefficient: number;
    width: number;
    mask: number[];
    scores: number[];
    old_logprobs: number[];
    ref_logprobs: number[];
    rewards: number[];
    kl: number;
  }[];
  kl_controller: { start: number; target: number; horizon: number; n: number; kls: number[]; coefficients: number[] }[];
}

const advantageCases: AdvantageCase[] = read("advantages");
const policyLossCases: PolicyLossCase[] = read("policy-losses");
const terms: TrainingTerms = read("training-terms");

function expectClose(actual: ArrayLike<number>, expected: readonly number[], tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i++)
    expect(Math.abs(actual[i]! - expected[i]!), `entry ${i}`).toBeLessThanOrEqual(
      tolerance * (1 + Math.abs(expected[i]!)),
    );
}

function expectMetrics(actual: Record<string, number> | undefined, expected: Record<string, number>): void {
  expect(Object.keys(actual ?? {}).sort()).toEqual(Object.keys(expected).sort());
  for (const [name, value] of Object.entries(expected))
    expect(Math.abs(actual![name]! - value), name).toBeLessThanOrEqual(1e-5 * (1 + Math.abs(value)));
}

const equalRows = (tokens: number, width: number) =>
  Int32Array.from({ length: tokens / width + 1 }, (_, i) => i * width);

function toOffsets(lengths: readonly number[]): Int32Array {
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => {
    offsets[i + 1] = offsets[i]! + length;
  });
  return offsets;
}

describe("advantages of an independent numpy reference", () => {
  it("cover every estimator", () => {
    expect([...new Set(advantageCases.map((c) => c.name))].sort()).toEqual(advantageEstimators.names());
  });

  it.each(advantageCases)("$name, gamma $gamma, by_std $by_std", (c) => {
    const outputs = advantageEstimators.get(c.name)({
      tokenLevelRewards: c.rewards,
      responseMask: c.mask,
      offsets: equalRows(c.mask.length, c.width),
      groups: c.groups,
      values: c.values,
      baselines: c.baselines,
      rewardParts: c.parts,
      oldLogprobs: c.old_logprobs,
      sumPiSquared: c.sum_pi_squared,
      rolloutIsWeights: c.is_weights ?? undefined,
      gamma: c.gamma,
      lam: c.lam,
      normalizeByStd: c.by_std,
    });
    expectClose(outputs.advantages, c.advantages, 1e-5);
    expectClose(outputs.returns, c.returns, 1e-5);
    expectMetrics(outputs.metrics, c.explained === null ? {} : { vf_explained_var: c.explained });
  });
});

describe("policy losses and gradients of an independent PyTorch reference", () => {
  it("cover every loss", () => {
    expect([...new Set(policyLossCases.map((c) => c.mode))].sort()).toEqual(policyLosses.names());
  });

  const named = policyLossCases.map((c) => ({ ...c, corrected: c.is_weights !== null }));
  it.each(named)("$mode, $agg, KL $kl_type, entropy $entropy_coeff, corrected $corrected", (c) => {
    const p = c.parameters;
    const options: PolicyLossOptions = {
      lossMode: c.mode,
      lossAggMode: c.agg,
      lossScaleFactor: c.loss_scale_factor,
      clipRatioLow: p.clip_ratio_low!,
      clipRatioHigh: p.clip_ratio_high!,
      clipRatioC: p.clip_ratio_c!,
      clipCovRatio: p.clip_cov_ratio!,
      clipCovLb: p.clip_cov_lb!,
      clipCovUb: p.clip_cov_ub!,
      klCovRatio: p.kl_cov_ratio!,
      ppoKlCoef: p.ppo_kl_coef!,
      tauPos: p.tau_pos!,
      tauNeg: p.tau_neg!,
      droBeta: p.dro_beta ?? null,
      entropyCoeff: c.entropy_coeff,
      kl: c.kl_type ? { coefficient: c.kl_coef, type: c.kl_type } : null,
      currentCorrection: null,
    };
    const logprobs = Float32Array.from(c.logprobs);
    const oldLogprobs = Float32Array.from(c.old_logprobs);
    const advantages = Float32Array.from(c.advantages);
    const result = composePolicyLoss(options)({
      sequenceIndices: Int32Array.from(c.lengths, (_, i) => i),
      offsets: toOffsets(c.lengths),
      logprobs,
      entropy: Float32Array.from(c.entropy_values),
      columns: {
        advantages,
        oldLogprobs,
        refLogprobs: Float32Array.from(c.ref_logprobs),
        ...(c.is_weights ? { rolloutIsWeights: Float32Array.from(c.is_weights) } : {}),
        ...policyLosses.get(c.mode).prepare?.({ logprobs, oldLogprobs, advantages, random: () => 0 }, options),
      },
      totals: { tokens: logprobs.length, sequences: c.lengths.length },
    });
    expect(Math.abs(result.loss - c.loss)).toBeLessThan(1e-6 * (1 + Math.abs(c.loss)));
    expectClose(result.dLogprobs, c.d_logprobs, 1e-5);
    expectClose(result.dEntropy ?? new Float32Array(c.d_entropy.length), c.d_entropy, 1e-5);
    expectMetrics(result.metrics, c.metrics);
  });
});

describe("other terms of an independent reference", () => {
  it.each(terms.whiten)("masked whitening, shift_mean $shift_mean", ({ values, mask, shift_mean, mean, whitened }) => {
    expect(maskedMean(values, mask)).toBeCloseTo(mean, 6);
    expectClose(maskedWhiten(values, mask, shift_mean), whitened, 1e-5);
  });

  it.each(terms.value_loss)("clipped value loss, $agg", (c) => {
    const loss = composeValueLoss({ cliprangeValue: 0.5, lossAggMode: c.agg, lossScaleFactor: null });
    const result = loss({
      sequenceIndices: Int32Array.from(c.lengths, (_, i) => i),
      offsets: toOffsets(c.lengths),
      values: Float32Array.from(c.values),
      columns: { oldValues: Float32Array.from(c.old_values), returns: Float32Array.from(c.returns) },
      totals: { tokens: c.values.length, sequences: c.lengths.length },
    });
    expectClose(result.dValues, c.d_values, 1e-5);
    const vpred_mean = c.values.reduce((a, b) => a + b, 0) / c.values.length;
    expectMetrics(
      { loss: result.loss, ...result.metrics },
      { loss: c.loss, vf_loss: c.loss, vf_clipfrac: c.clipfrac, vpred_mean },
    );
    expect(c.clipfrac).toBeGreaterThan(0);
  });

  it.each(terms.rollout_correction)("rollout correction, is $rollout_is $rollout_is_threshold, rs $config", (c) => {
    const [names, threshold, lower] = c.config;
    const [least, most] = [null, c.rollout_is_threshold].flat().slice(-2) as [number | null, number];
    const result = correctRollout(
      {
        oldLogprobs: c.old_logprobs,
        rolloutLogprobs: c.rollout_logprobs,
        responseMask: c.mask,
        offsets: equalRows(c.mask.length, c.width),
      },
      {
        rolloutIs: c.rollout_is,
        rolloutIsThreshold: most,
        rolloutIsThresholdLower: least,
        rolloutRs: names === null ? [] : parseRejectionRules(names, threshold, lower),
        rolloutIsBatchNormalize: false,
        rolloutTokenVetoThreshold: null,
      },
    );
    if (c.weights) expectClose(result.weights!, c.weights, 1e-5);
    else expect(result.weights).toBeNull();
    expect([...result.lossMask]).toEqual(c.kept);
    expectMetrics(result.metrics, c.metrics);
  });

  it.each(terms.kl_in_reward)("KL in the reward, $type", (c) => {
    const result = penalizeRewards({
      tokenLevelScores: c.scores,
      oldLogprobs: c.old_logprobs,
      refLogprobs: c.ref_logprobs,
      responseMask: c.mask,
      offsets: equalRows(c.mask.length, c.width),
      type: c.type,
      coefficient: c.coefficient,
    });
    expectClose(result.tokenLevelRewards, c.rewards, 1e-6);
    expect(result.kl).toBeCloseTo(c.kl, 6);
  });

  it.each(terms.kl_controller)("adaptive KL controller", (c) => {
    const controller = new KlController({
      type: "adaptive",
      coefficient: c.start,
      targetKl: c.target,
      horizon: c.horizon,
    });
    const coefficients = c.kls.map((kl) => {
      controller.update(kl, c.n);
      return controller.coefficient;
    });
    expectClose(coefficients, c.coefficients, 1e-8);
  });
});
