import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  composeValueLoss,
  correctRollout,
  crossEntropyLoss,
  defaultRolloutCorrection,
  defaultValueLoss,
  explainVariance,
  KlController,
  keepTopVariance,
  keepVaryingGroups,
  klEstimates,
  type PolicyFiltration,
  parseRejectionRules,
  penalizeRewards,
  resampleByScore,
} from "./internal.js";
import { rejectTokens } from "./rejection-rules.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1), numRuns: 50 });

const finite = (min: number, max: number) => fc.double({ min, max, noNaN: true, noDefaultInfinity: true });

describe("KL estimates", () => {
  it("are 0 at equality; k2 and k3 are never negative", () => {
    for (const type of klEstimates.names()) expect(klEstimates.get(type)(0).value).toBe(0);
    fc.assert(
      fc.property(finite(-30, 30), (d) => klEstimates.get("k3")(d).value >= 0 && klEstimates.get("k2")(d).value >= 0),
    );
    expect(() => klEstimates.get("k9")).toThrow(
      expect.objectContaining({ code: "config/unknown-name", expected: expect.stringContaining("abs, abs+, k1") }),
    );
  });

  it('with "+" have their own value and k2\'s gradient', () => {
    fc.assert(
      fc.property(finite(-5, 5), fc.constantFrom("k1", "kl", "abs", "k2", "mse", "k3", "low_var_kl"), (d, type) => {
        expect(klEstimates.get(`${type}+`)(d)).toEqual({ value: klEstimates.get(type)(d).value, gradient: d });
      }),
    );
  });

  it("have the derivative that finite differences find", () => {
    fc.assert(
      fc.property(finite(-2, 15), fc.constantFrom("k1", "abs", "k2", "k3"), (d, type) => {
        fc.pre(Math.abs(d) > 1e-3);
        const estimate = klEstimates.get(type);
        const numeric = (estimate(d + 1e-5).value - estimate(d - 1e-5).value) / 2e-5;
        const near = [-1e-4, 1e-4].map((e) => estimate(d + e).gradient);
        // At the clamp to 10 the two sides differ.
        fc.pre(Math.abs(near[0]! - near[1]!) < 1e-2);
        expect(estimate(d).gradient).toBeCloseTo(numeric, 3);
      }),
    );
  });
});

describe("KL in the reward", () => {
  it("leaves masked tokens alone, and has no KL where nothing was sampled", () => {
    const inputs = {
      tokenLevelScores: [1, 5, 2],
      oldLogprobs: [-1, -9, -1],
      refLogprobs: [-2, -1, -1],
      responseMask: [1, 0, 1],
      offsets: [0, 3],
      type: "kl",
      coefficient: 0.5,
    };
    expect([...penalizeRewards(inputs).tokenLevelRewards]).toEqual([0.5, 0, 2]);
    expect(penalizeRewards(inputs).kl).toBe(0.5);
    expect(penalizeRewards({ ...inputs, responseMask: [0, 0, 0] }).kl).toBe(0);
  });

  it("a fixed controller stands still; an adaptive one moves towards its target, and survives a checkpoint", () => {
    const options = { coefficient: 0.1, targetKl: 0.1, horizon: 100 };
    const fixed = new KlController({ type: "fixed", ...options });
    fixed.update(9, 50);
    expect(fixed.coefficient).toBe(0.1);
    const adaptive = new KlController({ type: "adaptive", ...options });
    adaptive.update(9, 50);
    expect(adaptive.coefficient).toBeCloseTo(0.1 * (1 + (0.2 * 50) / 100), 12);
    const resumed = new KlController({ type: "adaptive", ...options });
    resumed.restore(JSON.parse(JSON.stringify(adaptive.save())));
    for (const controller of [adaptive, resumed]) controller.update(0, 50);
    expect(resumed.coefficient).toBe(adaptive.coefficient);
    expect(resumed.coefficient).toBeLessThan(0.11);
  });
});

describe("value loss", () => {
  const values = fc
    .array(fc.tuple(finite(-2, 2), finite(-2, 2), finite(-2, 2)), { minLength: 2, maxLength: 9 })
    .map((tokens) => ({
      sequenceIndices: Int32Array.of(0, 1),
      offsets: Int32Array.of(0, 1, tokens.length),
      values: Float32Array.from(tokens, (t) => t[0]),
      columns: { oldValues: Float32Array.from(tokens, (t) => t[1]), returns: Float32Array.from(tokens, (t) => t[2]) },
      totals: { tokens: tokens.length + 3, sequences: 3 },
    }));

  it.each(["token-mean", "seq-mean-token-sum", "seq-mean-token-mean"])(
    "%s: has its finite differences",
    (lossAggMode) => {
      const loss = composeValueLoss({ ...defaultValueLoss, lossAggMode });
      fc.assert(
        fc.property(values, fc.nat(), (inputs, pick) => {
          const at = pick % inputs.values.length;
          const gradient = loss(inputs).dValues[at]!;
          const center = inputs.values[at]!;
          const evaluate = (step: number) => {
            inputs.values[at] = center + step;
            return [loss(inputs).loss, inputs.values[at]!] as const;
          };
          const slopes = [1e-3, 5e-4].map((step) => {
            const [above, upper] = evaluate(step);
            const [below, lower] = evaluate(-step);
            return (above - below) / (upper - lower);
          });
          fc.pre(Math.abs(slopes[0]! - slopes[1]!) < 1e-4);
          expect(Math.abs(slopes[0]! - gradient)).toBeLessThan(2e-3 * (1 + Math.abs(gradient)));
        }),
      );
    },
  );

  it("is 0 for a perfect critic; the explained variance is then 1, and 0 for a constant", () => {
    const returns = Float32Array.of(1, 2, 4);
    const { loss, metrics } = composeValueLoss()({
      sequenceIndices: Int32Array.of(0),
      offsets: Int32Array.of(0, 3),
      values: returns,
      columns: { oldValues: returns, returns },
      totals: { tokens: 3, sequences: 1 },
    });
    expect({ loss, ...metrics }).toEqual({ loss: 0, vf_loss: 0, vf_clipfrac: 0, vpred_mean: expect.closeTo(7 / 3, 6) });
    expect(explainVariance(returns, returns, [1, 1, 1])).toBe(1);
    expect(explainVariance([2, 2, 2], returns, [1, 1, 1])).toBeCloseTo(0, 4);
    expect(explainVariance([2, 99, 2], returns, [1, 0, 1])).toBeCloseTo(0, 4);
  });
});

describe("rollout correction", () => {
  const batch = fc.array(fc.record({ old: finite(-3, 0), rollout: finite(-3, 0), mask: fc.constantFrom(0, 1) }), {
    minLength: 1,
    maxLength: 8,
  });
  const correct = (
    tokens: { old: number; rollout: number; mask: number }[],
    options: Partial<typeof defaultRolloutCorrection>,
  ) =>
    correctRollout(
      {
        oldLogprobs: tokens.map((t) => t.old),
        rolloutLogprobs: tokens.map((t) => t.rollout),
        responseMask: tokens.map((t) => t.mask),
        offsets: [0, tokens.length],
      },
      { ...defaultRolloutCorrection, ...options },
    );

  it("has weights of 1, nothing rejected and no KL where sampler and trainer agree", () => {
    fc.assert(
      fc.property(batch, fc.constantFrom("token", "sequence"), (tokens, rolloutIs) => {
        const same = tokens.map((t) => ({ ...t, rollout: t.old }));
        const { weights, lossMask, metrics } = correct(same, {
          rolloutIs,
          rolloutRs: parseRejectionRules(rolloutIs, null),
        });
        expect([...weights!]).toEqual(tokens.map((t) => t.mask));
        expect([...lossMask]).toEqual(tokens.map((t) => t.mask));
        if (!tokens.some((t) => t.mask)) return;
        expect(metrics.kl).toBeCloseTo(0, 12);
        expect(metrics).toMatchObject({ k3_kl: 0, rollout_is_mean: 1, rollout_is_eff_sample_size: 1 });
      }),
    );
  });

  it("normalised, has weights whose mean is 1: over tokens, or over sequences' means", () => {
    const inputs = {
      oldLogprobs: [0, Math.log(0.5), Math.log(4), -1, Math.log(0.25)],
      rolloutLogprobs: [0, 0, 0, -9, 0],
      responseMask: [1, 1, 1, 0, 1],
      offsets: [0, 3, 5],
    };
    const options = { ...defaultRolloutCorrection, rolloutIsBatchNormalize: true };
    const token = correctRollout(inputs, { ...options, rolloutIs: "token" });
    // Weights 1, 0.5, 2 (cut off from 4) and 0.25.
    const mean = 3.75 / 4;
    expect(token.metrics.rollout_is_batch_norm_factor).toBeCloseTo(mean, 12);
    [1, 0.5, 2, 0, 0.25].forEach((w, t) => void expect(token.weights![t]).toBeCloseTo(w / mean, 6));
    // 1 · 0.5 · 4 = 2 for the first sequence, 0.25 for the second: each counts once, whatever its length.
    const sequence = correctRollout(inputs, { ...options, rolloutIs: "sequence" });
    expect(sequence.metrics.rollout_is_batch_norm_factor).toBeCloseTo(1.125, 12);
    [2, 2, 2, 0, 0.25].forEach((w, t) => void expect(sequence.weights![t]).toBeCloseTo(w / 1.125, 6));
    expect(correctRollout(inputs, options).weights).toBeNull();
  });

  it("vetoes sequences with a token that the trainer finds next to impossible", () => {
    const inputs = {
      oldLogprobs: [-1, -1, -30, -2, -1, -40],
      rolloutLogprobs: [-1, -1, -1, -2, -1, -1],
      responseMask: [0, 1, 1, 1, 1, 0],
      offsets: [0, 3, 6],
    };
    const vetoed = correctRollout(inputs, { ...defaultRolloutCorrection, rolloutTokenVetoThreshold: 1e-4 });
    expect([...vetoed.lossMask]).toEqual([0, 0, 0, 1, 1, 0]);
    expect(vetoed.metrics).toMatchObject({
      rollout_is_veto_fraction: 0.5,
      rollout_is_catastrophic_token_fraction: 0.25,
    });
    // exp(-29) is about 2.5e-13: the ratio is not clamped for this.
    const { lossMask } = correctRollout(inputs, { ...defaultRolloutCorrection, rolloutTokenVetoThreshold: 1e-13 });
    expect([...lossMask]).toEqual(inputs.responseMask);
    expect([...correctRollout(inputs).lossMask]).toEqual(inputs.responseMask);
  });

  it("measures the weights that are used, and the ratios before they are cut off by token", () => {
    // The first conversation has a ratio of 4 · 4, the second sampled nothing, the third has 1.
    const inputs = {
      oldLogprobs: [Math.log(4), Math.log(4), -5, 0, 0],
      rolloutLogprobs: [0, 0, 0, 0, 0],
      responseMask: [1, 1, 0, 1, 1],
      offsets: [0, 2, 3, 5],
    };
    const { metrics } = correctRollout(inputs, { ...defaultRolloutCorrection, rolloutIs: "sequence" });
    expect(metrics).toMatchObject({ rollout_is_max: 2, rollout_is_min: 1, rollout_is_seq_mean: 1.5 });
    expect(metrics).toMatchObject({ rollout_is_ratio_fraction_high: 0.5, rollout_is_seq_fraction_high: 0.5 });
    // Two conversations, not three: -log(4) / 2.
    expect(metrics.log_ppl_diff).toBeCloseTo(-Math.log(4) / 2, 12);
  });

  it("never exceeds the threshold, never looks at masked tokens", () => {
    fc.assert(
      fc.property(batch, fc.constantFrom("token", "sequence"), finite(-9, 9), (tokens, rolloutIs, noise) => {
        const options = {
          rolloutIs,
          rolloutIsThreshold: 1.5,
          rolloutRs: parseRejectionRules("seq_mean_k1,token_k3", "0.8_1.3,0.5"),
        };
        const plain = correct(tokens, options);
        expect(plain.weights!.every((w) => w <= 1.5)).toBe(true);
        const disturbed = correct(
          tokens.map((t) => (t.mask ? t : { ...t, old: noise })),
          options,
        );
        expect(disturbed).toEqual(plain);
      }),
    );
  });
});

describe("rejection rules", () => {
  it("clamp each token's log-ratio to ±20 before they add or average, as verl 0.9", () => {
    // Sampler / training graph is exp(60) at the first token: clamped, the sum is 20 - 10 and the mean 5.
    const logRatios = Float64Array.of(-60, 10);
    const reject = (name: string, upper: number) =>
      [...rejectTokens(logRatios, parseRejectionRules(name, `1e-9_${Math.exp(upper)}`))].join("");
    expect(reject("seq_sum_k1", 11)).toBe("00");
    expect(reject("seq_sum_k1", 9)).toBe("11");
    expect(reject("seq_mean_k1", 6)).toBe("00");
    expect(reject("token_k1", 19)).toBe("10");
    const least = Float64Array.of(Number.NEGATIVE_INFINITY, 10);
    expect([...rejectTokens(least, parseRejectionRules("seq_sum_k1", `1e-9_${Math.exp(11)}`))]).toEqual([0, 0]);
  });

  const bounds = (names: string, threshold: string | number | null, lower: number | null = null) =>
    parseRejectionRules(names, threshold, lower).map((rule) => [
      rule.name,
      rule.estimate === "k1" ? Math.exp(rule.lower) : rule.lower,
      rule.estimate === "k1" ? Math.exp(rule.upper) : rule.upper,
    ]);
  const near = (x: number) => expect.closeTo(x, 12);

  it("bound sampler / training graph; with verl 0.7's names training graph / sampler", () => {
    expect(bounds("token_k1", "0.5_4")).toEqual([["token_k1", near(0.5), near(4)]]);
    expect(bounds("token", 4, 0.5)).toEqual([["token_k1", near(0.25), near(2)]]);
    expect(bounds("sequence", "0.5_4")).toEqual([["seq_sum_k1", near(0.25), near(2)]]);
    expect(bounds("seq_mean_k1", 4, 0.5)).toEqual([["seq_mean_k1", near(0.5), near(4)]]);
    for (const name of ["geometric", "seq_mean_k1"]) {
      expect(bounds(name, 1.25)).toEqual([["seq_mean_k1", near(0.8), near(1.25)]]);
      expect(bounds(name, null)).toEqual([["seq_mean_k1", near(0.5), near(2)]]);
    }
  });

  it("are several with commas in between, with a threshold for each or one for all", () => {
    expect(bounds("token_k1 , seq_max_k2", "0.5_2, 0.1")).toEqual([
      ["token_k1", near(0.5), near(2)],
      ["seq_max_k2", Number.NEGATIVE_INFINITY, 0.1],
    ]);
    expect(bounds("token_k2,seq_sum_k3", "0.3").map(([, , upper]) => upper)).toEqual([0.3, 0.3]);
  });

  it.each([
    ["seq_max_k1", 2, "config/unknown-name", "seq_max_k2"],
    ["", 2, "config/unknown-name", "seq_max_k2"],
    ["token_k1,token_k2,token_k3", "1.5,2", "config/bad-value", "for each of token_k1, token_k2, token_k3"],
    ["token_k2", null, "config/bad-value", "a number above 0 for token_k2"],
    ["token_k3", "0.5_2", "config/bad-value", "a number above 0 for token_k3"],
    ["token_k1", "2_0.5", "config/bad-value", "0 < lower < upper"],
    ["token_k1", "0_2", "config/bad-value", "lower_upper"],
    ["token_k1", "1_1", "config/bad-value", "lower_upper"],
    ["token_k1", "x_2", "config/bad-value", "lower_upper"],
    ["token_k1", "_2", "config/bad-value", "lower_upper"],
    ["token_k1", "1_2_3", "config/bad-value", "lower_upper"],
    ["token_k1", 0.5, "config/bad-value", "a number above 1"],
    ["token_k1", "", "config/bad-value", "lower_upper"],
  ])("%s with %s are refused", (names, threshold, code, expected) => {
    expect(() => parseRejectionRules(names, threshold)).toThrow(
      expect.objectContaining({ code, expected: expect.stringContaining(expected) }),
    );
  });

  it("take IcePop's bounds as a mask of weights, not of tokens", () => {
    const inputs = {
      oldLogprobs: [0.3, 0, 1, -1].map(Math.log).map((x) => (Number.isFinite(x) ? x : 0)),
      rolloutLogprobs: [0, 0, 0, 0],
      responseMask: [1, 1, 1, 1],
      offsets: [0, 4],
    };
    const { weights, lossMask } = correctRollout(inputs, {
      ...defaultRolloutCorrection,
      rolloutIs: "token",
      rolloutIsThresholdLower: 0.5,
    });
    expect([...weights!]).toEqual([0, 1, 1, 1]);
    expect([...lossMask]).toEqual([1, 1, 1, 1]);
  });
});

describe("policy filtration", () => {
  const draw = (scores: number[], method: PolicyFiltration["method"], times = 200) => {
    let state = 1;
    const random = () => {
      state = (state * 48271) % 2147483647;
      return state / 2147483647;
    };
    const counts = scores.map(() => 0);
    for (let k = 0; k < times; k++) {
      const drawn = resampleByScore(scores, { method, weightPow: 2 }, random);
      expect(drawn).toHaveLength(scores.length);
      expect(drawn).toEqual([...drawn].sort((a, b) => a - b));
      for (const i of drawn) counts[i]!++;
    }
    return counts.map((count) => count / (times * scores.length));
  };
  const shares = (...expected: number[]) => expected.map((share) => expect.closeTo(share, 1));

  it("draws by the power of scores, by extremes, or the best more often than others", () => {
    expect(draw([0, 1, -2, 0], "pow")).toEqual(shares(0, 0.2, 0.8, 0));
    expect(draw([0, 1, -2, 0.5], "max_min")).toEqual(shares(0, 0.5, 0.5, 0));
    expect(draw([1, 1, 3, 0], "max_random")).toEqual(shares(1 / 7, 1 / 7, 4 / 7, 1 / 7));
  });

  it("draws evenly if all scores are 0, and survives scores that overflow", () => {
    expect(draw([0, 0], "pow")).toEqual(shares(0.5, 0.5));
    expect(draw([1e200, 1], "pow")).toEqual([1, 0]);
    expect(draw([], "pow")).toEqual([]);
  });
});

describe("group filter", () => {
  it("keeps groups whose values differ, and groups of one", () => {
    expect(keepVaryingGroups(["a", "b", "a", "c", "b", "d", "d"], [1, 0, 1, 5, 1, 0, 0])).toEqual(["b", "c"]);
    expect(keepVaryingGroups([], [])).toEqual([]);
  });

  it("keeps groups whose values differ by more than a bound", () => {
    const groups = ["a", "a", "b", "b", "c"];
    expect(keepVaryingGroups(groups, [0, 0.5, 1, 0, 9], 0.5)).toEqual(["b", "c"]);
    expect(keepVaryingGroups(groups, [0, 0.5, 1, 0, 9], 0.4)).toEqual(["a", "b", "c"]);
  });

  it("keeps the groups of largest variance that hold a share of all of it", () => {
    // Variances: a 1/4, b 1, c 0, d 1/4, together 3/2.
    const groups = ["a", "b", "a", "b", "c", "c", "d", "d"];
    const values = [0, 0, 1, 2, 5, 5, 1, 0];
    expect(keepTopVariance(groups, values, 2 / 3)).toEqual(["b"]);
    expect(keepTopVariance(groups, values, 0.7)).toEqual(["a", "b"]);
    expect(keepTopVariance(groups, values, 0.9)).toEqual(["a", "b", "d"]);
    expect(keepTopVariance(groups, values, 1)).toEqual(["a", "b", "d"]);
    expect(keepTopVariance(["a", "b"], [1, 1], 0.5)).toEqual(["a", "b"]);
    expect(keepTopVariance([], [], 0.5)).toEqual([]);
  });
});

describe("weighted cross entropy", () => {
  it("counts a token of weight 0 in the denominator alone", () => {
    const result = crossEntropyLoss({
      sequenceIndices: Int32Array.of(0),
      offsets: Int32Array.of(0, 3),
      logprobs: Float32Array.of(-1, -2, -4),
      entropy: new Float32Array(3),
      columns: { weights: Float32Array.of(1, 0, 0.5) },
      totals: { tokens: 4, sequences: 1 },
    });
    expect(result.loss).toBeCloseTo((1 + 2) / 4, 6);
    expect([...result.dLogprobs]).toEqual([-0.25, -0, -0.125]);
  });
});
