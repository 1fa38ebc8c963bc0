import { describe, expect, it } from "vitest";
import {
  aggregations,
  composePolicyLoss,
  composeValueLoss,
  correctRollout,
  KlController,
  losses,
  maskedMean,
  maskedVariance,
  maskedWhiten,
  parseRejectionRules,
  penalizeRewards,
  resampleByScore,
} from "../index.js";
import { equalRows, expectClose, expectNear, toOffsets } from "../stored-values/stored-values.js";
import { readBounds, verlValues } from "./verl-values.js";

type CorrectionCase = (typeof verlValues.rollout_correction)[number];

function readLogprobs(name: string) {
  const { width, mask, old, rollout } = verlValues.logprobs[name]!;
  return { responseMask: mask, oldLogprobs: old, rolloutLogprobs: rollout, offsets: equalRows(mask.length, width) };
}

function correct(c: CorrectionCase, rules = c.rollout_rs, bounds = c.rollout_rs_threshold) {
  return correctRollout(readLogprobs(c.logprobs), {
    rolloutIs: c.rollout_is,
    ...readBounds(c.rollout_is_threshold),
    rolloutRs: rules === null ? [] : parseRejectionRules(rules, bounds),
    rolloutIsBatchNormalize: c.rollout_is_batch_normalize,
    rolloutTokenVetoThreshold: null,
  });
}

/** For each row, the log-ratios of its sampled tokens: training graph / sampler. */
function readLogRatios(name: string): number[][] {
  const { responseMask, oldLogprobs, rolloutLogprobs, offsets } = readLogprobs(name);
  return Array.from({ length: offsets.length - 1 }, (_, i) => {
    const tokens = Array.from({ length: offsets[i + 1]! - offsets[i]! }, (_, k) => offsets[i]! + k);
    return tokens.filter((t) => responseMask[t]).map((t) => oldLogprobs[t]! - rolloutLogprobs[t]!);
  });
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

/** verl's metrics converted to our definitions: undoes each intended difference, with its size. */
function toOurMetrics(c: CorrectionCase): Record<string, number> {
  const expected = { ...c.metrics };
  const rows = readLogRatios(c.logprobs);
  const sampled = rows.filter((row) => row.length > 0);
  const logRatios = sampled.flat();
  if (c.rollout_is === "sequence") {
    // Its fractions count sequences, and its extremes are those of the ratios before they are cut off.
    const [high, low] = [expected.rollout_is_ratio_fraction_high!, expected.rollout_is_ratio_fraction_low!];
    const [all, raw] = [rows.map(sum), sampled.map(sum)];
    const { rolloutIsThreshold: upper, rolloutIsThresholdLower } = readBounds(c.rollout_is_threshold);
    const lower = rolloutIsThresholdLower ?? 1 / upper;
    const isHigh = (d: number) => Math.exp(d) > upper;
    const isLow = (d: number) => Math.exp(d) < lower;
    expectNear(high * all.length, all.filter(isHigh).length, "fraction_high");
    expectNear(low * all.length, all.filter(isLow).length, "fraction_low");
    expectNear(expected.rollout_is_max!, Math.exp(Math.min(20, Math.max(...all))), "max");
    expectNear(expected.rollout_is_min!, Math.exp(Math.min(...all)), "min");
    const share = (isIn: (d: number) => boolean) => sum(sampled.map((row) => (isIn(sum(row)) ? row.length : 0)));
    expected.rollout_is_ratio_fraction_high = share(isHigh) / logRatios.length;
    expected.rollout_is_ratio_fraction_low = share(isLow) / logRatios.length;
    const cut = (d: number) => {
      const ratio = Math.exp(Math.max(-20, Math.min(20, d)));
      return rolloutIsThresholdLower === null ? Math.min(ratio, upper) : isHigh(d) || isLow(d) ? 0 : ratio;
    };
    expected.rollout_is_max = Math.max(...raw.map(cut));
    expected.rollout_is_min = Math.min(...raw.map(cut));
  }
  // Here the two fractions express it.
  delete expected.rollout_is_oob_ratio;
  // Each rule's own statistics.
  for (const name of Object.keys(expected))
    if (/^rollout_rs_(token|seq)_(\w+_)?k[123]_/.test(name)) delete expected[name];
  return expected;
}

/** The contribution of a conversation without a sampled token to a mean over conversations in verl. */
const ofEmpty: Record<string, number> = {
  ...{ training_ppl: 1, rollout_ppl: 1, ppl_ratio: 1, chi2_seq: 0, training_log_ppl: 0, rollout_log_ppl: 0 },
  ...{ log_ppl_diff: 0, log_ppl_abs_diff: 0, rollout_rs_seq_masked_fraction: 0 },
  ...{ rollout_is_seq_mean: 0, rollout_is_seq_fraction_high: 0, rollout_is_seq_fraction_low: 1 },
};

/** Extremes and spreads over conversations, which in verl include the empty conversation's 0. */
const withEmpty = ["log_ppl_diff_max", "log_ppl_diff_min", "rollout_is_seq_max_deviation", "rollout_is_seq_min"].concat(
  "rollout_is_seq_std",
);

describe(`other terms by verl ${verlValues.verl}`, () => {
  it.each(verlValues.whiten)("masked whitening, shift_mean $shift_mean", (c) => {
    expectNear(maskedMean(c.values, c.mask), c.mean, "mean");
    expectNear(maskedVariance(c.values, c.mask), c.variance, "variance");
    expectClose(maskedWhiten(c.values, c.mask, c.shift_mean), c.whitened);
  });

  it("clipped value losses cover every aggregation", () => {
    expect(verlValues.value_loss.map((c) => c.agg).sort()).toEqual(aggregations.names());
  });

  it.each(verlValues.value_loss)("clipped value loss, $agg", (c) => {
    const loss = composeValueLoss({ cliprangeValue: 0.5, lossAggMode: c.agg, lossScaleFactor: c.loss_scale_factor });
    const offsets = toOffsets(c.lengths);
    const result = loss({
      sequenceIndices: Int32Array.from({ length: offsets.length - 1 }, (_, i) => i),
      offsets,
      values: Float32Array.from(c.values),
      columns: { oldValues: Float32Array.from(c.old_values), returns: Float32Array.from(c.returns) },
      totals: { tokens: c.values.length, sequences: offsets.length - 1 },
    });
    expectNear(result.loss, c.loss, "loss");
    expectClose(result.dValues, c.d_values);
    expect(Object.keys(result.metrics!).sort()).toEqual(["vf_clipfrac", "vf_loss", "vpred_mean"]);
    expectNear(result.metrics!.vf_loss!, c.loss, "vf_loss");
    expectNear(result.metrics!.vf_clipfrac!, c.clipfrac, "vf_clipfrac");
    expectNear(result.metrics!.vpred_mean!, c.vpred_mean, "vpred_mean");
    expect(c.clipfrac).toBeGreaterThan(0);
  });

  it.each(verlValues.kl_in_reward)("KL in the reward, $type, $logprobs", (c) => {
    const { responseMask, oldLogprobs, rolloutLogprobs, offsets } = readLogprobs(c.logprobs);
    const result = penalizeRewards({
      tokenLevelScores: c.scores,
      oldLogprobs,
      refLogprobs: rolloutLogprobs,
      responseMask,
      offsets,
      type: c.type,
      coefficient: c.coefficient,
    });
    expectClose(result.tokenLevelRewards, c.rewards);
    // verl's average includes the 0 of conversations without sampled tokens.
    const rows = readLogRatios(c.logprobs);
    const sampled = rows.filter((row) => row.length > 0).length;
    expectNear((result.kl * sampled) / rows.length, c.kl, "KL");
    const options = { type: "adaptive", coefficient: c.coefficient, targetKl: c.target, horizon: c.horizon } as const;
    const controller = new KlController(options);
    controller.update(c.kl, rows.length);
    expectNear(controller.coefficient, c.next_coefficient, "next coefficient");
  });

  it("adaptive KL controller", () => {
    const { start, target, horizon, n, kls, coefficients } = verlValues.kl_controller;
    const controller = new KlController({ type: "adaptive", coefficient: start, targetKl: target, horizon });
    const own = kls.map((kl) => {
      controller.update(kl, n);
      return controller.coefficient;
    });
    expectClose(own, coefficients, 1e-8);
  });

  it.each(verlValues.filtration)("policy filtration draws $scores as often, $method $weight_pow", (c) => {
    const draws = 2000;
    const counts = c.scores.map(() => 0);
    let k = 0;
    while (k < draws * c.scores.length) {
      // Even steps through [0, 1): a share of the draws is a share of the interval.
      const random = () => (k++ + 0.5) / (draws * c.scores.length);
      for (const i of resampleByScore(c.scores, { method: c.method, weightPow: c.weight_pow }, random)) counts[i]!++;
    }
    const total = sum(c.weights);
    counts.forEach((count, i) => {
      expect(Math.abs(count / k - c.weights[i]! / total), `score ${c.scores[i]}`).toBeLessThan(2 / draws);
    });
  });
});

describe(`rollout correction by verl ${verlValues.verl}`, () => {
  const named = verlValues.rollout_correction;
  it.each(named)("is $rollout_is $rollout_is_threshold, rs $rollout_rs $rollout_rs_threshold, $logprobs", (c) => {
    const result = correct(c);
    if (c.weights) expectClose(result.weights!, c.weights);
    else expect(result.weights).toBeNull();
    expect([...result.lossMask]).toEqual(c.kept);
    const expected = toOurMetrics(c);
    const ours = result.metrics;
    expect(Object.keys(ours).sort()).toEqual(Object.keys(expected).sort());
    const rows = readLogRatios(c.logprobs);
    const [all, sampled] = [rows.length, rows.filter((row) => row.length > 0).length];
    // verl computes k3_kl from ratios that are not clamped.
    const beyond = rows.flat().map((d) => Math.exp(d) - Math.exp(Math.max(-20, Math.min(20, d))));
    ours.k3_kl! += sum(beyond) / beyond.length;
    for (const [name, value] of Object.entries(expected)) {
      if (all > sampled && withEmpty.includes(name)) continue;
      const empty = ofEmpty[name];
      const whole = empty === undefined ? ours[name]! : (ours[name]! * sampled + empty * (all - sampled)) / all;
      expectNear(whole, value, name);
    }
    if (c.metrics.rollout_is_oob_ratio !== undefined && c.rollout_is === "token")
      expectNear(
        ours.rollout_is_ratio_fraction_high! + ours.rollout_is_ratio_fraction_low!,
        c.metrics.rollout_is_oob_ratio,
        "rollout_is_oob_ratio",
      );
  });

  const older: Record<string, string> = { token_k1: "token", seq_sum_k1: "sequence", seq_mean_k1: "geometric" };
  it.each(named.filter((c) => older[c.rollout_rs ?? ""]))(
    "$rollout_rs as verl 0.7 writes it, $rollout_rs_threshold",
    (c) => {
      const [lower, upper] = String(c.rollout_rs_threshold).split("_").map(Number) as [number, number?];
      // Bounds of the inverse ratio.
      const bounds = upper === undefined ? lower : `${1 / upper}_${1 / lower}`;
      expect([...correct(c, older[c.rollout_rs!], bounds).lossMask]).toEqual(c.kept);
    },
  );

  it("has for each rule a token that it rejects, and one that it leaves", () => {
    for (const rule of new Set(named.flatMap((c) => c.rollout_rs ?? []))) {
      const cases = named.filter((c) => c.rollout_rs === rule);
      const judged = cases.flatMap((c) => c.kept.filter((_, t) => readLogprobs(c.logprobs).responseMask[t]));
      expect([...new Set(judged)].sort(), rule).toEqual([0, 1]);
    }
  });
});

describe("the divergence over the teacher's likeliest tokens", () => {
  const given = ({ topk, min_logprob, max_loss }: (typeof verlValues.topk_divergences)[number]) =>
    `topk ${topk}, at least ${min_logprob}, at most ${max_loss}`;

  it.each(verlValues.topk_divergences.map((c) => [given(c), c] as const))("%s", (_, c) => {
    const tokens = c.student.length / c.vocabulary;
    const rows = Array.from({ length: tokens }, (_, i) => c.student.slice(i * c.vocabulary, (i + 1) * c.vocabulary));
    const logSoftmax = rows.map((row) => {
      const top = Math.max(...row);
      const logSum = top + Math.log(sum(row.map((z) => Math.exp(z - top))));
      return row.map((z) => z - logSum);
    });
    const loss = composePolicyLoss(
      losses.ppo({
        teacher: {
          ...{ estimate: "forward_kl_topk", topk: c.topk, taskRewards: false },
          ...{ minLogprob: c.min_logprob, maxLoss: c.max_loss },
        },
      }),
    );
    const zeros = new Float32Array(tokens);
    const found = loss({
      sequenceIndices: Int32Array.of(0),
      offsets: Int32Array.of(0, tokens),
      logprobs: zeros,
      entropy: zeros,
      columns: { oldLogprobs: zeros, advantages: zeros },
      candidates: {
        count: c.topk,
        ids: Int32Array.from(c.ids),
        logprobs: Float32Array.from(c.ids, (id, k) => logSoftmax[Math.floor(k / c.topk)]![id]!),
        columns: { teacherLogprobs: Float32Array.from(c.teacher_logprobs) },
      },
      totals: { tokens, sequences: 1 },
    });
    expect(found.dLogprobs).toEqual(zeros);
    expect(Math.abs(found.loss - c.loss)).toBeLessThan(1e-6);
    expect(Math.abs(found.metrics!.teacher_mass! - c.masses[0])).toBeLessThan(1e-6);
    expect(Math.abs(found.metrics!.student_mass! - c.masses[1])).toBeLessThan(1e-6);
    // dz_j = sum_k c_k (delta_jk - p_j).
    const dLogits = logSoftmax.flatMap((row, i) => {
      const own = [...found.dCandidates!.subarray(i * c.topk, (i + 1) * c.topk)];
      const ids = c.ids.slice(i * c.topk, (i + 1) * c.topk);
      return row.map((logprob, j) => sum(own.filter((_, k) => ids[k] === j)) - sum(own) * Math.exp(logprob));
    });
    expect(Math.max(...c.d_logits.map(Math.abs))).toBeGreaterThan(0.01);
    dLogits.forEach((d, j) => {
      expect(Math.abs(d - c.d_logits[j]!), `logit ${j}`).toBeLessThan(1e-6);
    });
  });
});
