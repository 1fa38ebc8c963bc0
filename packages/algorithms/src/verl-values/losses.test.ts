import { describe, expect, it } from "vitest";
import {
  aggregations,
  correctRollout,
  klEstimates,
  type PolicyLossOptions,
  parseRejectionRules,
  policyLosses,
  type RolloutCorrectionOptions,
} from "../index.js";
import { evaluateLoss } from "../stored-values/evaluate-loss.js";
import { expectClose, expectNear, toOffsets } from "../stored-values/stored-values.js";
import { type Correction, type Evaluated, type LossCase, readBounds, verlValues } from "./verl-values.js";

/** Policy losses that verl has no value for, each with its reason. */
const notInVerl: Record<string, string> = {};

/** Losses of verl that do not exist here, each with its reason. */
const notHere: Record<string, string> = {
  bypass_mode: "another loss, with weights and rejections of `currentCorrection`",
};

/** Metrics that only verl has: always 0, except those of dppo. */
const onlyInVerl: Record<string, string[]> = {
  gspo: ["pg_clipfrac_lower"],
  sapo: ["pg_clipfrac", "pg_clipfrac_lower"],
  cispo: ["pg_clipfrac_lower"],
  dppo_tv: ["pg_clipfrac_lower"],
  dppo_kl: ["pg_clipfrac_lower"],
};

/** Metrics that verl lacks. */
const onlyHere: Record<string, string[]> = { gpg: ["ppo_kl"] };

function toCorrectionOptions(c: Correction): RolloutCorrectionOptions {
  return {
    // The loss's ratio is the weight.
    rolloutIs: c.loss_type === "ppo_clip" ? null : c.rollout_is,
    ...readBounds(c.rollout_is_threshold ?? 2),
    rolloutRs: c.rollout_rs === null ? [] : parseRejectionRules(c.rollout_rs, c.rollout_rs_threshold),
    rolloutIsBatchNormalize: c.rollout_is_batch_normalize ?? false,
    rolloutTokenVetoThreshold: null,
  };
}

function evaluate(c: LossCase, changes: { agg?: string; weights?: number[] } = {}): Required<Evaluated> {
  const p = c.parameters;
  const { correction } = c;
  const options: PolicyLossOptions = {
    teacher: null,
    terms: {},
    demonstrationCoeff: 0,
    lossMode: correction === null ? c.mode : correction.loss_type === "reinforce" ? "gpg" : "vanilla",
    lossAggMode: changes.agg ?? c.agg,
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
    droBeta: p.dro_beta!,
    entropyCoeff: c.entropy_coeff,
    observationCoeff: 0,
    kl: c.kl_type ? { coefficient: c.kl_coef, type: c.kl_type } : null,
    currentCorrection: correction === null ? null : toCorrectionOptions(correction),
  };
  const tokens = verlValues.tokens[c.tokens]!;
  return evaluateLoss(options, tokens.lengths, tokens.logprobs, tokens.entropy_values, {
    advantages: tokens.advantages,
    oldLogprobs: tokens.old_logprobs,
    refLogprobs: tokens.ref_logprobs,
    ...(c.corrected ? { rolloutIsWeights: changes.weights ?? tokens.is_weights } : {}),
  });
}

function expectMetrics(c: LossCase, actual: Record<string, number>, expected: Record<string, number>): void {
  const [more, fewer] = [onlyHere[c.mode] ?? [], onlyInVerl[c.mode] ?? []];
  const names = Object.keys(actual).filter((name) => !more.includes(name));
  expect(names.sort()).toEqual(
    Object.keys(expected)
      .filter((name) => !fewer.includes(name))
      .sort(),
  );
  for (const name of names) expectNear(actual[name]!, expected[name]!, name);
  if (!c.mode.startsWith("dppo")) for (const name of fewer) expect(expected[name], name).toBe(0);
}

function expectSame(c: LossCase, actual: Evaluated, expected: Evaluated): void {
  expectNear(actual.loss, expected.loss, "loss");
  expectClose(actual.d_logprobs, expected.d_logprobs);
  expectClose(actual.d_entropy, expected.d_entropy);
  expectMetrics(c, actual.metrics, expected.metrics);
}

const find = (deviates: string) => verlValues.losses.filter((c) => c.deviates === deviates);
const findOne = (deviates: string) => {
  const [c, ...more] = find(deviates);
  expect(more).toEqual([]);
  return { c: c!, tokens: verlValues.tokens[c!.tokens]!, ours: evaluate(c!) };
};
/** On each token, the index of its sequence. */
const sequenceOf = (lengths: readonly number[]) =>
  lengths.filter((length) => length > 0).flatMap((length, s) => new Array<number>(length).fill(s));

const ordinary = verlValues.losses.filter((c) => c.deviates === null);

describe(`policy losses and their gradients by verl ${verlValues.verl}`, () => {
  it("are there for every loss, aggregation and KL type", () => {
    const modes = [...new Set(ordinary.map((c) => c.mode))].sort();
    expect([...new Set([...modes.filter((mode) => !notHere[mode]), ...Object.keys(notInVerl)])].sort()).toEqual(
      policyLosses.names(),
    );
    expect(verlValues.policy_losses).toEqual(modes);
    for (const mode of modes.filter((name) => !["gspo", "bypass_mode"].includes(name))) {
      const aggs = new Set(ordinary.filter((c) => c.mode === mode).map((c) => c.agg));
      expect([...aggs].sort(), mode).toEqual(aggregations.names());
    }
    expect([...new Set(ordinary.flatMap((c) => c.kl_type ?? []))].sort()).toEqual(klEstimates.names());
    expect(Object.keys(verlValues.kl.types).sort()).toEqual(klEstimates.names());
  });

  const losses = ordinary.filter((c) => c.correction === null);
  it.each(losses)("$mode, $agg, KL $kl_type, entropy $entropy_coeff, corrected $corrected, $tokens", (c) => {
    expectSame(c, evaluate(c), c);
  });

  it.each(Object.entries(verlValues.kl.types))("KL %s, far apart too", (type, { values, gradients }) => {
    const estimated = verlValues.kl.d.map(klEstimates.get(type));
    const tolerance = 1e-7;
    estimated.forEach(({ value, gradient }, i) => {
      expectNear(value, values[i]!, `value at ${verlValues.kl.d[i]}`, tolerance);
      expectNear(gradient, gradients[i]!, `gradient at ${verlValues.kl.d[i]}`, tolerance);
    });
  });
});

describe(`bypass_mode by verl ${verlValues.verl}`, () => {
  const named = ordinary
    .filter((c) => c.correction !== null)
    .map((c) => ({ ...c, ...c.correction!, normalize: c.correction!.rollout_is_batch_normalize ?? false }));
  it.each(named)(
    "$loss_type, is $rollout_is $rollout_is_threshold, normalised $normalize, rs $rollout_rs $rollout_rs_threshold, $agg",
    (c) => {
      const ours = evaluate(c);
      expectNear(ours.loss, c.loss, "loss");
      expectClose(ours.d_logprobs, c.d_logprobs);
      expectClose(ours.d_entropy, c.d_entropy);
      for (const [name, value] of Object.entries(ours.metrics)) {
        // Means over all sampled tokens, including rejected ones.
        if (c.rollout_rs && /^(ppo_kl|pg_clipfrac.*)$/.test(name)) continue;
        // Shares of tokens; verl's are of sequences.
        if (c.rollout_is === "sequence" && name.includes("ratio_fraction")) continue;
        expectNear(value, c.metrics[name]!, name);
      }
      if (c.rollout_rs) expect(c.metrics["rollout_corr/rollout_rs_masked_fraction"]).toBeGreaterThan(0);
    },
  );
});

describe("policy losses that differ from verl's on purpose", () => {
  it.each(find("clamp"))("$mode: log-ratios beyond ±20 count as ±20, and have no slope", (c) => {
    const ours = evaluate(c);
    expectNear(ours.loss, c.clamped!.loss, "loss");
    expectMetrics(c, ours.metrics, c.clamped!.metrics);
    expect(Math.abs(c.loss / ours.loss - 1)).toBeGreaterThan(1e-3);
    const tokens = verlValues.tokens[c.tokens]!;
    const within = tokens.logprobs.map((x, i) => c.mode === "gspo" || Math.abs(x - tokens.old_logprobs[i]!) <= 20);
    const pick = (values: number[]) => values.filter((_, i) => within[i]);
    expectClose(pick(ours.d_logprobs), pick(c.clamped!.d_logprobs));
    const beyond = ours.d_logprobs
      .map((d, i) => (within[i] ? [] : ([d * tokens.lengths.length, i] as const)))
      .filter((x) => x.length > 0);
    const rows = sequenceOf(tokens.lengths);
    for (const [d, i] of beyond as [number, number][])
      expectNear(d * tokens.lengths[rows[i]!]!, c.mode === "dro" ? -tokens.advantages[i]! : 0, `token ${i}`);
  });

  it("gspo: always the mean of sequences' means, whatever loss_agg_mode says", () => {
    const { c, tokens, ours } = findOne("aggregation of gspo");
    expect(ours.d_logprobs).toEqual(evaluate(c, { agg: "seq-mean-token-mean" }).d_logprobs);
    const lengths = tokens.lengths.filter((length) => length > 0);
    sequenceOf(tokens.lengths).forEach((s, i) => {
      const scale = tokens.logprobs.length / (lengths.length * lengths[s]!);
      expectNear(ours.d_logprobs[i]!, c.d_logprobs[i]! * scale, `token ${i}`);
    });
  });

  it("geo_mean: sequences without tokens are not averaged in", () => {
    const { c, tokens, ours } = findOne("empty rows of geo_mean");
    const scale = tokens.lengths.length / tokens.lengths.filter((length) => length > 0).length;
    expect(scale).toBeGreaterThan(1);
    expectNear(ours.loss, c.loss * scale, "loss");
    expectClose(
      ours.d_logprobs,
      c.d_logprobs.map((d) => d * scale),
    );
  });

  it("geo_mean: a weight of 0 is 0 for its sequence, and not 1e-10", () => {
    const { c, tokens, ours } = findOne("weight of zero");
    const nearly = evaluate(c, { weights: tokens.is_weights.map((weight) => weight || 1e-10) });
    expectClose(nearly.d_logprobs, c.d_logprobs);
    const rows = sequenceOf(tokens.lengths);
    const lost = rows[tokens.is_weights.indexOf(0)];
    ours.d_logprobs.forEach((d, i) => {
      expect(d + 0).toBe(rows[i] === lost ? 0 : nearly.d_logprobs[i]! + 0);
    });
    expect(c.d_logprobs.some((d, i) => rows[i] === lost && Math.abs(d) > 1e-6)).toBe(true);
  });

  it("clip_cov: as many tokens are left out, others by another draw", () => {
    const { c, ours } = findOne("draw of clip_cov");
    expect(c.metrics.pg_clipfrac).toBeGreaterThan(0);
    expectNear(ours.metrics.pg_clipfrac!, c.metrics.pg_clipfrac!, "pg_clipfrac");
    expect(ours.d_logprobs.filter((d) => d === 0)).toHaveLength(c.d_logprobs.filter((d) => d === 0).length);
  });

  it("kl_cov: a log-ratio within 1e-5 of 0 is rounding, and has no slope", () => {
    const { c, tokens, ours } = findOne("slope of kl_cov");
    expectNear(ours.loss, c.loss, "loss");
    const slope = c.parameters.ppo_kl_coef! / tokens.logprobs.length;
    ours.d_logprobs.forEach((d, i) => {
      const logRatio = tokens.logprobs[i]! - tokens.old_logprobs[i]!;
      const missing = logRatio !== 0 && Math.abs(logRatio) < 1e-5 ? slope * Math.sign(logRatio) : 0;
      expect(c.d_logprobs[i]! - d, `token ${i}`).toBeCloseTo(missing, 7);
    });
  });

  it.each(find("dppo without advantage"))("$mode: pg_clipfrac counts no token without advantage", (c) => {
    const ours = evaluate(c);
    expectClose(ours.d_logprobs, c.d_logprobs);
    const { logprobs } = verlValues.tokens[c.tokens]!;
    expectNear(ours.metrics.pg_clipfrac! + 1 / logprobs.length, c.metrics.pg_clipfrac!, "pg_clipfrac");
  });

  it("dppo_kl: a chance of exactly 1 is infinitely far from any other", () => {
    const { c, tokens, ours } = findOne("dppo_kl of certainty");
    const certain = tokens.logprobs.indexOf(0);
    // With 1e-8 for the remaining probability, the divergence is 8.5: within this bound of 12.
    expect(ours.d_logprobs[certain]).toBe(0);
    expectNear(c.d_logprobs[certain]!, -2 / tokens.logprobs.length, "gradient");
    expectClose(
      ours.d_logprobs.filter((_, i) => i !== certain),
      c.d_logprobs.filter((_, i) => i !== certain),
    );
  });

  it.each(find("rejected tokens of a row"))("bypass_mode: a row's mean is over all its sampled tokens", (c) => {
    const tokens = verlValues.tokens[c.tokens]!;
    const ours = evaluate(c);
    const offsets = toOffsets(tokens.lengths);
    const { lossMask } = correctRollout(
      {
        oldLogprobs: tokens.logprobs,
        rolloutLogprobs: tokens.old_logprobs,
        responseMask: tokens.logprobs.map(() => 1),
        offsets,
      },
      toCorrectionOptions(c.correction!),
    );
    const kept = (s: number) => lossMask.slice(offsets[s], offsets[s + 1]).reduce((sum, bit) => sum + bit, 0);
    sequenceOf(tokens.lengths).forEach((s, i) => {
      const scale = lossMask[i] ? kept(s) / (offsets[s + 1]! - offsets[s]!) : 0;
      expectNear(ours.d_logprobs[i]!, c.d_logprobs[i]! * scale, `token ${i}`);
    });
    expect(lossMask).toContain(0);
  });
});
