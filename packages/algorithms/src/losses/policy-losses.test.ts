import type { LossFunction, LossInputs, LossOutputs } from "@cria/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  aggregations,
  composePolicyLoss,
  correctRollout,
  defaultPolicyLoss,
  defaultRolloutCorrection,
  needsPreparation,
  type PolicyLossOptions,
  parseRejectionRules,
  policyLosses,
  preparePolicyLoss,
} from "../internal.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1), numRuns: 50 });

const finite = (min: number, max: number) => fc.double({ min, max, noNaN: true, noDefaultInfinity: true });

const token = fc.record({
  logprob: finite(-4, -0.1),
  // Unclipped, clipped, at the dual clip's bound; away from kinks, where central differences are meaningless.
  logRatio: fc.oneof(finite(0.01, 0.15), finite(-0.15, -0.01), finite(0.4, 0.9), finite(-0.9, -0.4), fc.constant(2)),
  advantage: fc.oneof(finite(-2, -0.1), finite(0.1, 2), fc.constant(0)),
  toReference: fc.oneof(finite(0.01, 1.5), finite(-1.5, -0.01)),
  entropy: finite(0, 3),
  weight: finite(0.2, 2),
});
type Token = typeof token extends fc.Arbitrary<infer T> ? T : never;

/** Two to four sequences in one micro-batch of a larger mini-batch. */
const batches = fc
  .array(fc.array(token, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 4 })
  .map((sequences) => layOut(sequences));

interface Batch {
  sequences: Token[][];
  inputs: LossInputs;
}

function layOut(sequences: Token[][], totals?: LossInputs["totals"]): Batch {
  const tokens = sequences.flat();
  const column = (pick: (t: Token) => number) => Float32Array.from(tokens, pick);
  const offsets = new Int32Array(sequences.length + 1);
  sequences.forEach((sequence, i) => {
    offsets[i + 1] = offsets[i]! + sequence.length;
  });
  return {
    sequences,
    inputs: {
      sequenceIndices: Int32Array.from(sequences, (_, i) => i),
      offsets,
      logprobs: column((t) => t.logprob),
      entropy: column((t) => t.entropy),
      columns: {
        oldLogprobs: column((t) => t.logprob - t.logRatio),
        advantages: column((t) => t.advantage),
        refLogprobs: column((t) => t.logprob - t.toReference),
        rolloutIsWeights: column((t) => t.weight),
      },
      totals: totals ?? { tokens: tokens.length + 5, sequences: sequences.length + 1 },
    },
  };
}

const withOptions = (options: Partial<PolicyLossOptions>): PolicyLossOptions => ({
  ...defaultPolicyLoss,
  lossScaleFactor: 16,
  clipCovRatio: 0.5,
  clipCovLb: 0.05,
  klCovRatio: 0.3,
  droBeta: 0.35,
  ...options,
});

/** The columns of the loss's first phase, as the trainer adds them. */
function prepare(options: PolicyLossOptions, { columns, ...inputs }: LossInputs): LossInputs {
  const prepared = policyLosses.resolve(options.lossMode).prepare?.(
    {
      logprobs: inputs.logprobs,
      oldLogprobs: columns.oldLogprobs!,
      advantages: columns.advantages!,
      random: () => 0.5,
    },
    options,
  );
  return { ...inputs, columns: { ...columns, ...prepared } };
}

/** Central differences at one token; null where two step sizes disagree, since they straddle a kink. */
function differentiate(loss: () => number, values: Float32Array, at: number, alongside?: Float32Array): number | null {
  const center = values[at]!;
  const other = alongside?.[at] ?? 0;
  const evaluate = (step: number) => {
    values[at] = center + step;
    if (alongside) alongside[at] = other + step;
    return [loss(), values[at]!] as const;
  };
  const slope = (step: number) => {
    const [above, upper] = evaluate(step);
    const [below, lower] = evaluate(-step);
    evaluate(0);
    return (above - below) / (upper - lower);
  };
  const numeric = slope(1e-3);
  return Math.abs(numeric - slope(5e-4)) > 2e-4 * (1 + Math.abs(numeric)) ? null : numeric;
}

describe.each(policyLosses.names())("policy loss %s", (lossMode) => {
  const variants: Partial<PolicyLossOptions>[] = aggregations.names().map((lossAggMode) => ({ lossMode, lossAggMode }));
  for (const type of ["k1", "abs", "k2", "k3"])
    variants.push({ lossMode, entropyCoeff: 0.02, kl: { coefficient: 0.1, type } });

  it.each(variants)("has the gradient that finite differences find: $lossAggMode, KL $kl.type", (variant) => {
    const options = withOptions(variant);
    const loss = composePolicyLoss(options);
    let compared = 0;
    fc.assert(
      fc.property(batches, fc.nat(), (batch, pick) => {
        // gspo's gradient is straight-through: it equals the derivative where a sequence's tokens count alike.
        const even = (s: Token[]) => s.map((t) => ({ ...t, advantage: s[0]!.advantage, weight: s[0]!.weight }));
        const { inputs } = lossMode === "gspo" ? layOut(batch.sequences.map(even)) : batch;
        const prepared = prepare(options, inputs);
        const at = pick % inputs.logprobs.length;
        const { dLogprobs, dEntropy } = loss(prepared);
        const value = () => loss(prepared).loss;
        // These stop the ratio's gradient. The ratio must stay constant, so the old logprob moves along.
        const alongside = /^(cispo|dppo_.*)$/.test(lossMode) ? prepared.columns.oldLogprobs! : undefined;
        const numeric = differentiate(value, prepared.logprobs, at, alongside);
        if (numeric !== null) {
          compared++;
          expect(Math.abs(numeric - dLogprobs[at]!)).toBeLessThan(2e-3 * (1 + Math.abs(numeric)));
        }
        const byEntropy = differentiate(value, prepared.entropy, at)!;
        expect(Math.abs(byEntropy - (dEntropy?.[at] ?? 0))).toBeLessThan(1e-4);
      }),
    );
    expect(compared).toBeGreaterThan(25);
  });

  it.each(aggregations.names())("%s: does not depend on how the mini-batch is cut", (lossAggMode) => {
    const options = withOptions({ lossMode, lossAggMode, entropyCoeff: 0.02, kl: { coefficient: 0.1, type: "k3" } });
    const loss = composePolicyLoss(options);
    fc.assert(
      fc.property(batches, ({ sequences, inputs }) => {
        // Statistics are computed once, from the whole; the rest is split into single sequences.
        const prepared = prepare(options, inputs);
        const whole = loss(prepared);
        const parts = sequences.map((sequence, s) => {
          const [from, to] = [inputs.offsets[s]!, inputs.offsets[s + 1]!];
          const columns = Object.entries(prepared.columns).map(([name, values]) => [name, values.slice(from, to)]);
          return loss({
            ...layOut([sequence], inputs.totals).inputs,
            sequenceIndices: Int32Array.of(s),
            columns: Object.fromEntries(columns),
          });
        });
        expect(parts.flatMap((part) => [...part.dLogprobs])).toEqual([...whole.dLogprobs]);
        expect(parts.reduce((sum, part) => sum + part.loss, 0)).toBeCloseTo(whole.loss, 6);
        for (const [name, value] of Object.entries(whole.metrics!))
          expect(parts.reduce((sum, part) => sum + part.metrics![name]!, 0)).toBeCloseTo(value, 6);
      }),
    );
  });

  it("follows permutations of sequences", () => {
    const options = withOptions({ lossMode, clipCovRatio: 1 });
    const loss = composePolicyLoss(options);
    fc.assert(
      fc.property(batches, ({ sequences, inputs }) => {
        const moved = layOut([...sequences].reverse(), inputs.totals).inputs;
        const plain = loss(prepare(options, inputs));
        const reversed = loss(prepare(options, moved));
        const ends = [...moved.offsets].slice(1).reverse();
        const back = sequences.flatMap((s, i) => [...reversed.dLogprobs.slice(ends[i]! - s.length, ends[i]!)]);
        // Equal covariances are ranked by position.
        const mean = (values: Float32Array) => values.reduce((a, b) => a + b, 0) / values.length;
        const { advantages } = inputs.columns as { advantages: Float32Array };
        const [a, p] = [mean(advantages), mean(inputs.logprobs)];
        const ranks = new Set(inputs.logprobs.map((x, i) => Math.round(1e4 * (x - p) * (advantages[i]! - a))));
        fc.pre(lossMode !== "kl_cov" || ranks.size === inputs.logprobs.length);
        expect(reversed.loss).toBeCloseTo(plain.loss, 5);
        back.forEach((gradient, i) => {
          expect(gradient).toBeCloseTo(plain.dLogprobs[i]!, 5);
        });
      }),
    );
  });

  it("is linear in the advantages' scale", () => {
    const options = withOptions({ lossMode, ppoKlCoef: 0, droBeta: 0 });
    const loss = composePolicyLoss(options);
    fc.assert(
      fc.property(batches, finite(0.5, 3), ({ inputs }, scale) => {
        const prepared = prepare(options, inputs);
        const advantages = prepared.columns.advantages!.map((a) => a * scale);
        const scaled = loss({ ...prepared, columns: { ...prepared.columns, advantages } });
        expect(scaled.loss).toBeCloseTo(loss(prepared).loss * scale, 4);
      }),
    );
  });

  if (!/^(gpg|cispo|dro|dppo_.*)$/.test(lossMode))
    it("sees ratios alone: a shift of both logprobs changes nothing", () => {
      const options = withOptions({ lossMode });
      const loss = composePolicyLoss(options);
      fc.assert(
        fc.property(batches, finite(-2, 2), ({ inputs }, shift) => {
          const prepared = prepare(options, inputs);
          const oldLogprobs = prepared.columns.oldLogprobs!.map((x) => x + shift);
          const moved = loss({
            ...prepared,
            logprobs: prepared.logprobs.map((x) => x + shift),
            columns: { ...prepared.columns, oldLogprobs },
          });
          expect(moved.loss).toBeCloseTo(loss(prepared).loss, 4);
        }),
      );
    });

  it("is scaled by rollout-correction weights; weights of 1 change nothing", () => {
    const options = withOptions({ lossMode });
    const loss = composePolicyLoss(options);
    fc.assert(
      fc.property(batches, finite(0.1, 2), ({ inputs }, weight) => {
        const prepared = prepare(options, inputs);
        const weigh = (value: number) => {
          const rolloutIsWeights = new Float32Array(inputs.logprobs.length).fill(value);
          return loss({ ...prepared, columns: { ...prepared.columns, rolloutIsWeights } });
        };
        const { rolloutIsWeights: _, ...columns } = prepared.columns;
        const plain = loss({ ...prepared, columns });
        expect(weigh(1)).toEqual(plain);
        expect(weigh(weight).loss).toBeCloseTo(weight * plain.loss, 5);
      }),
    );
  });

  it("vanishes without advantages, if it says so", () => {
    const options = withOptions({ lossMode });
    const loss = composePolicyLoss(options);
    fc.assert(
      fc.property(batches, ({ sequences }) => {
        const { inputs } = layOut(sequences.map((s) => s.map((t) => ({ ...t, advantage: 0 }))));
        const { dLogprobs, loss: value } = loss(prepare(options, inputs));
        if (!policyLosses.get(lossMode).vanishesWithoutAdvantage) return;
        expect(value).toBeCloseTo(0, 12);
        expect(dLogprobs.every((d) => d === 0)).toBe(true);
      }),
    );
  });

  it("stays finite for absurd ratios", () => {
    const tokens = [60, -60, 0].map((logRatio) => ({
      logprob: -70,
      logRatio,
      advantage: logRatio >= 0 ? -1 : 1,
      toReference: 130,
      entropy: 0,
      weight: 1,
    }));
    const options = withOptions({ lossMode, kl: { coefficient: 1, type: "k3" } });
    const { loss, dLogprobs } = composePolicyLoss(options)(prepare(options, layOut([tokens]).inputs));
    expect(Number.isFinite(loss)).toBe(true);
    expect(dLogprobs.every(Number.isFinite)).toBe(true);
  });
});

/** One token: its logprob, the old one's, its advantage. */
function evaluateOne(loss: LossFunction, logprob: number, old: number, advantage: number) {
  return loss({
    sequenceIndices: Int32Array.of(0),
    offsets: Int32Array.of(0, 1),
    logprobs: Float32Array.of(logprob),
    entropy: Float32Array.of(0),
    columns: { oldLogprobs: Float32Array.of(old), advantages: Float32Array.of(advantage) },
    totals: { tokens: 1, sequences: 1 },
  });
}

/** Typed arrays are matched entry by entry, bit for bit; lists are not. */
const listGradients = (result: LossOutputs) => ({ ...result, dLogprobs: [...result.dLogprobs] });

describe("single tokens", () => {
  const compose = (lossMode: string) => composePolicyLoss({ ...defaultPolicyLoss, lossMode, droBeta: 0.05 });

  it("vanilla clips on the side that the advantage rewards, and bounds negative advantages", () => {
    const loss = compose("vanilla");
    expect(evaluateOne(loss, Math.log(1.5), 0, 1)).toMatchObject({
      loss: expect.closeTo(-1.2, 5),
      metrics: { pg_clipfrac: 1 },
    });
    expect(evaluateOne(loss, Math.log(0.5), 0, -1).loss).toBeCloseTo(0.8, 5);
    expect(evaluateOne(loss, Math.log(1.1), 0, 1).loss).toBeCloseTo(-1.1, 5);
    const bounded = evaluateOne(loss, Math.log(5), 0, -1);
    expect(bounded).toMatchObject({ loss: expect.closeTo(3, 5), metrics: { pg_clipfrac_lower: 1 } });
    expect(evaluateOne(loss, 30, 0, 1).dLogprobs[0]).toBe(0);
  });

  it("gspo bounds the sequence's ratio at exp(10), without a gradient from there on", () => {
    const { loss, dLogprobs } = evaluateOne(compose("gspo"), 15, 0, -1);
    expect(loss / Math.exp(10)).toBeCloseTo(1, 6);
    expect(dLogprobs[0]).toBe(0);
  });

  it("dppo lets unlikely tokens move by large ratios, and stops likely ones: only on the way out", () => {
    for (const lossMode of ["dppo_tv", "dppo_kl"]) {
      const loss = composePolicyLoss(withOptions({ lossMode, clipRatioLow: 0.1, clipRatioHigh: 0.1, clipRatioC: 20 }));
      const at = (now: number, old: number, advantage: number) =>
        listGradients(evaluateOne(loss, Math.log(now), Math.log(old), advantage));
      // A hundredfold of nearly nothing is close: kept, with its ratio cut off.
      expect(at(0.01, 1e-4, 1)).toMatchObject({ dLogprobs: [expect.closeTo(-20, 4)], metrics: { pg_clipfrac: 0 } });
      // From 0.5 to 0.95 is far, though the ratio is 1.9.
      expect(at(0.95, 0.5, 1)).toMatchObject({ loss: 0, dLogprobs: [0], metrics: { pg_clipfrac: 1 } });
      // Steps back into the region are not stopped.
      expect(at(0.95, 0.5, -1).dLogprobs[0]).toBeCloseTo(1.9, 5);
      expect(at(0.05, 0.5, -1)).toMatchObject({ dLogprobs: [0], metrics: { pg_clipfrac: 1 } });
      expect(at(0.05, 0.5, 1).dLogprobs[0]).toBeCloseTo(-0.1, 5);
    }
    // Without advantage no step leads out, at any distance; a probability of exactly 1 is infinitely far from any
    // other.
    const kl = composePolicyLoss(withOptions({ lossMode: "dppo_kl", clipRatioHigh: 5 }));
    expect(evaluateOne(kl, Math.log(0.95), Math.log(0.01), 0).metrics!.pg_clipfrac).toBe(0);
    expect(evaluateOne(kl, 0, Math.log(0.5), 1).metrics!.pg_clipfrac).toBe(1);
    // KL of Bernoulli(0.5) and Bernoulli(0.7) is 0.0872, their total variation 0.2: the bounds apply to the divergence
    // itself.
    const kept = ["dppo_tv", "dppo_kl"].map((lossMode) => {
      const loss = composePolicyLoss(withOptions({ lossMode, clipRatioHigh: 0.1 }));
      return evaluateOne(loss, Math.log(0.7), Math.log(0.5), 1).metrics!.pg_clipfrac;
    });
    expect(kept).toEqual([1, 0]);
  });

  it("dro pulls back to the old policy with any advantage, and requires its coefficient", () => {
    expect(listGradients(evaluateOne(compose("dro"), -1, -3, 0))).toMatchObject({
      loss: expect.closeTo(0.1, 6),
      dLogprobs: [expect.closeTo(0.1, 6)],
    });
    expect(() => composePolicyLoss({ ...defaultPolicyLoss, lossMode: "dro" })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: 'loss "dro": droBeta' }),
    );
  });

  it("every loss with a ratio starts from the policy gradient, -A, where the policy is the old one", () => {
    for (const lossMode of policyLosses.names().filter((name) => !policyLosses.get(name).prepare))
      expect(evaluateOne(compose(lossMode), -1, -1, 0.7).dLogprobs[0], lossMode).toBeCloseTo(-0.7, 5);
  });
});

describe("losses with statistics over the mini-batch", () => {
  const tokens = (count: number) =>
    Array.from({ length: count }, (_, i) => ({
      tokenIds: [0, 1, 2],
      lossMask: [0, 1, i % 2],
      columns: { oldLogprobs: [0, -1 - i / 10, -2], advantages: [9, i - count / 2, 1] },
    }));
  const logprobs = (count: number) => tokens(count).map((s) => s.columns.oldLogprobs);
  const sum = (sequences: ReturnType<typeof preparePolicyLoss>, name: string) =>
    sequences.flatMap((s) => [...Array.from(s.columns![name]!)]).reduce((a, b) => a + b, 0);

  it("kl_cov penalises the share of tokens asked for, at least one, and none outside the mask", () => {
    for (const [klCovRatio, expected] of [
      [0.4, 6],
      [1e-9, 1],
    ] as const) {
      const options = withOptions({ lossMode: "kl_cov", klCovRatio });
      const prepared = preparePolicyLoss(options, tokens(10), logprobs(10), Math.random);
      expect(sum(prepared, "klCovPenalized")).toBe(expected);
      for (const { lossMask, columns } of prepared)
        for (let t = 0; t < 3; t++) if (!lossMask[t]) expect(columns!.klCovPenalized![t]).toBe(0);
    }
  });

  it("clip_cov leaves out as many tokens as its share allows, others for other draws", () => {
    const options = withOptions({ lossMode: "clip_cov", clipCovRatio: 0.2, clipCovLb: -100, clipCovUb: 100 });
    const patterns = [0, 0.99].map((draw) => {
      const prepared = preparePolicyLoss(options, tokens(10), logprobs(10), () => draw);
      expect(sum(prepared, "clipCovDropped")).toBe(3);
      return prepared.flatMap((s) => [...Array.from(s.columns!.clipCovDropped!)]).join("");
    });
    expect(patterns[0]).not.toBe(patterns[1]);
    const none = preparePolicyLoss({ ...options, clipCovLb: 1000, clipCovUb: 2000 }, tokens(4), logprobs(4), () => 0);
    expect(sum(none, "clipCovDropped")).toBe(0);
  });

  it("refuse a mini-batch that was not prepared; other losses pass through", () => {
    for (const lossMode of ["kl_cov", "clip_cov"]) {
      expect(needsPreparation(withOptions({ lossMode }))).toBe(true);
      const loss = composePolicyLoss(withOptions({ lossMode }));
      expect(() => evaluateOne(loss, -1, -1, 1)).toThrow(expect.objectContaining({ code: "data/not-prepared" }));
    }
    expect(needsPreparation(defaultPolicyLoss)).toBe(false);
    expect(preparePolicyLoss(defaultPolicyLoss, tokens(2), logprobs(2), Math.random)).toEqual(tokens(2));
  });
});

describe("correction by the policy as it is now", () => {
  const correction = {
    ...defaultRolloutCorrection,
    rolloutIs: "token",
    rolloutRs: parseRejectionRules("token_k1,seq_mean_k2", "0.5_2,0.3"),
  } as const;
  const options = (lossMode: string, more: object = {}, others: object = {}) =>
    withOptions({ lossMode, currentCorrection: { ...correction, ...more }, ...others });
  /** Flat over a batch: the correction of its logprobs against its old logprobs. */
  const correct = ({ inputs }: Batch, more: object = {}) =>
    correctRollout(
      {
        oldLogprobs: inputs.logprobs,
        rolloutLogprobs: inputs.columns.oldLogprobs!,
        responseMask: new Uint8Array(inputs.logprobs.length).fill(1),
        offsets: inputs.offsets,
      },
      { ...correction, ...more },
    );
  const without = ({ rolloutIsWeights: _, ...columns }: LossInputs["columns"]) => columns;

  // Rejected tokens stay in the denominators of sequences and of the mini-batch.
  it.each([
    ["vanilla", "token-mean"],
    ["gpg", "token-mean"],
    ["vanilla", "seq-mean-token-mean"],
  ])("%s, %s: has the gradient of the loss with these weights, 0 where rejected", (lossMode, lossAggMode) => {
    let rejections = 0;
    fc.assert(
      fc.property(batches, (batch) => {
        const { inputs } = batch;
        const { weights, lossMask } = correct(batch);
        rejections += lossMask.filter((bit) => bit === 0).length;
        const given = {
          ...inputs,
          columns: { ...inputs.columns, rolloutIsWeights: weights!.map((w, i) => w * lossMask[i]!) },
        };
        const expected = composePolicyLoss(withOptions({ lossMode, lossAggMode }))(given);
        const now = options(lossMode, {}, { lossAggMode });
        const actual = composePolicyLoss(now)({ ...inputs, columns: without(inputs.columns) });
        expect([...actual.dLogprobs]).toEqual([...expected.dLogprobs]);
        expect(actual.loss).toBeCloseTo(expected.loss, 6);
      }),
    );
    expect(rejections).toBeGreaterThan(10);
  });

  it.each([false, true])("does not depend on how the mini-batch is cut, normalised %s", (rolloutIsBatchNormalize) => {
    const loss = composePolicyLoss(options("gpg", { rolloutIsBatchNormalize }));
    expect(needsPreparation(options("gpg", { rolloutIsBatchNormalize }))).toBe(rolloutIsBatchNormalize);
    fc.assert(
      fc.property(batches, (batch) => {
        const { sequences, inputs } = batch;
        const sequencesOf = sequences.map((tokens, s) => ({
          tokenIds: [0, ...tokens.map(() => 1)],
          lossMask: [0, ...tokens.map(() => 1)],
          columns: Object.fromEntries(
            ["oldLogprobs", "advantages", "refLogprobs"].map((name) => [
              name,
              [0, ...inputs.columns[name]!.slice(inputs.offsets[s]!, inputs.offsets[s + 1]!)],
            ]),
          ),
        }));
        const logprobs = sequences.map((tokens) => [0, ...tokens.map((t) => Math.fround(t.logprob))]);
        const prepared = preparePolicyLoss(options("gpg", { rolloutIsBatchNormalize }), sequencesOf, logprobs, () => 0);
        const run = (indices: number[]) => {
          const layout = layOut(
            indices.map((s) => sequences[s]!),
            inputs.totals,
          ).inputs;
          const names = Object.keys(prepared[0]!.columns!);
          const join = (name: string) =>
            Float32Array.from(indices.flatMap((s) => [...Array.from(prepared[s]!.columns![name]!)].slice(1)));
          return loss({ ...layout, columns: Object.fromEntries(names.map((name) => [name, join(name)])) });
        };
        const whole = run([...sequences.keys()]);
        const parts = [...sequences.keys()].map((s) => run([s]));
        expect(parts.flatMap((part) => [...part.dLogprobs])).toEqual([...whole.dLogprobs]);
        for (const [name, value] of Object.entries(whole.metrics!))
          expect(
            parts.reduce((sum, part) => sum + (part.metrics![name] ?? 0), 0),
            name,
          ).toBeCloseTo(value, 5);
        expect(whole.metrics).toHaveProperty("rollout_corr/kl");
        const { weights, lossMask } = correct(batch, { rolloutIsBatchNormalize });
        const expected = inputs.columns.advantages!.map(
          (a, i) => (-a * weights![i]! * lossMask[i]!) / inputs.totals.tokens,
        );
        whole.dLogprobs.forEach((gradient, i) => {
          expect(gradient).toBeCloseTo(expected[i]!, 5);
        });
      }),
    );
  });
});

describe("mistakes", () => {
  it("refuses unknown names when the loss is composed, and lists the known ones", () => {
    const unknown = (received: string, known: string) =>
      expect.objectContaining({ code: "config/unknown-name", expected: expect.stringContaining(known), received });
    expect(() => composePolicyLoss({ ...defaultPolicyLoss, lossMode: "vanila" })).toThrow(unknown("vanila", "vanilla"));
    expect(() => composePolicyLoss({ ...defaultPolicyLoss, lossAggMode: "mean" })).toThrow(
      unknown("mean", "token-mean"),
    );
    expect(() => composePolicyLoss({ ...defaultPolicyLoss, kl: { coefficient: 1, type: "k7" } })).toThrow(
      unknown("k7", "low_var_kl"),
    );
  });

  it("a missing column and a missing scale factor are named", () => {
    const loss = composePolicyLoss({ ...defaultPolicyLoss, kl: { coefficient: 1, type: "k3" } });
    expect(() => evaluateOne(loss, -1, -1, 1)).toThrow(
      expect.objectContaining({ code: "data/missing-column", subject: "column refLogprobs" }),
    );
    const unscaled = composePolicyLoss({ ...defaultPolicyLoss, lossAggMode: "seq-mean-token-sum-norm" });
    expect(() => evaluateOne(unscaled, -1, -1, 1)).toThrow(
      expect.objectContaining({ code: "config/bad-value", expected: expect.stringContaining("loss_scale_factor") }),
    );
  });
});
