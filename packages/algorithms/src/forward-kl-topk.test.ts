import type { LossInputs } from "@cria/core";
import { describe, expect, it } from "vitest";
import { composePolicyLoss, losses, type TeacherTermOptions } from "./internal.js";

/** Candidates of four tokens, three each. The first token's sum is negative: the policy finds all of them likelier. */
const teacher = [-1.2, -1.5, -2, -0.2, -2.5, -4, -0.7, -1.1, -3, -1, -1.1, -1.2];
const policy = [-0.9, -1.2, -1.7, -1.6, -0.9, -6, -0.75, -1.3, -2.6, -2.2, -7, -0.6];

function evaluate(
  options: Partial<TeacherTermOptions>,
  {
    cut = [0, 4] as [number, number],
    own = policy,
    observed,
    weights,
  }: { cut?: [number, number]; own?: readonly number[]; observed?: number[]; weights?: number[] } = {},
) {
  const loss = composePolicyLoss(
    losses.ppo({
      teacher: { estimate: "forward_kl_topk", topk: 3, taskRewards: false, ...options },
      ...(observed ? { observations: 0.1 } : {}),
    }),
  );
  const part = (values: readonly number[], width = 1) =>
    Float32Array.from(values.slice(cut[0] * width, cut[1] * width));
  const logprobs = part([-0.3, -1.2, -2.5, -0.05]);
  const inputs: LossInputs = {
    sequenceIndices: Int32Array.of(0),
    offsets: Int32Array.of(0, logprobs.length),
    logprobs,
    entropy: new Float32Array(logprobs.length),
    columns: {
      oldLogprobs: logprobs,
      advantages: new Float32Array(logprobs.length),
      ...(observed ? { tokenKind: part(observed) } : {}),
      ...(weights ? { teacherWeights: part(weights) } : {}),
    },
    candidates: {
      count: 3,
      ids: Int32Array.from({ length: logprobs.length * 3 }, (_, k) => k),
      logprobs: part(own, 3),
      columns: { teacherLogprobs: part(teacher, 3) },
    },
    totals: { tokens: 4, sequences: 1, ...(observed ? { terms: { observations: { tokens: 1, sequences: 1 } } } : {}) },
  };
  return loss(inputs);
}

/** The sum over the candidates of each token, in float64. */
const sums = (least = Number.NEGATIVE_INFINITY) =>
  [0, 1, 2, 3].map((i) =>
    [0, 1, 2].reduce((sum, k) => {
      const [p, q] = [Math.max(teacher[3 * i + k]!, least), Math.max(policy[3 * i + k]!, least)];
      return sum + Math.exp(p) * (p - q);
    }, 0),
  );

describe("forward_kl_topk", () => {
  it("is the mean of p (log p - log q) over the candidates, with -p / n as gradient; a negative sum is 0 without", () => {
    const { loss, dLogprobs, dCandidates, metrics } = evaluate({});
    const exact = sums();
    expect(exact[0]).toBeLessThan(0);
    expect(loss).toBeCloseTo((exact[1]! + exact[2]! + exact[3]!) / 4, 6);
    expect(metrics!.teacher_divergence).toBeCloseTo(loss, 6);
    expect([...dLogprobs]).toEqual([0, 0, 0, 0]);
    dCandidates!.forEach((d, k) => {
      expect(d).toBeCloseTo(k < 3 ? 0 : -Math.exp(teacher[k]!) / 4, 6);
    });
    const mass = (values: readonly number[]) => values.reduce((sum, x) => sum + Math.exp(x), 0) / 4;
    expect(metrics!.teacher_mass).toBeCloseTo(mass(teacher), 6);
    expect(metrics!.student_mass).toBeCloseTo(mass(policy), 6);
  });

  it.each([
    { maxLoss: 0.7 },
    { minLogprob: -5 },
    { minLogprob: -1.15, maxLoss: 0.5 },
    { taskRewards: true, coefficient: 0.3 },
  ])("has the derivative that finite differences find: %o", (options) => {
    const { dCandidates } = evaluate(options);
    const h = 1e-3;
    policy.forEach((_, k) => {
      const shift = (by: number) => evaluate(options, { own: policy.map((x, i) => (i === k ? x + by : x)) }).loss;
      expect(dCandidates![k]!, `candidate ${k}`).toBeCloseTo((shift(h) - shift(-h)) / (2 * h), 3);
    });
  });

  it("counts logprobs below minLogprob as that, and cuts the sum off at maxLoss", () => {
    const [bounded, exact] = [evaluate({ minLogprob: -5, maxLoss: 0.7 }), sums(-5)];
    const clamped = exact.map((value) => Math.min(0.7, Math.max(0, value)));
    expect(clamped.filter((value) => value === 0.7).length).toBeGreaterThan(0);
    expect(bounded.loss).toBeCloseTo(clamped.reduce((sum, value) => sum + value, 0) / 4, 6);
    // The policy's logprobs of -6 and -7 are held.
    const { dCandidates } = evaluate({ minLogprob: -5 });
    const held = policy.map((logprob) => logprob < -5);
    dCandidates!.forEach((d, k) => {
      if (k >= 3) expect(d === 0, `candidate ${k}`).toBe(held[k]);
    });
  });

  it("adds up over micro-batches, and weighs tokens", () => {
    const weights = [1, 0.5, 2, 0.25];
    const whole = evaluate({}, { weights });
    const [first, second] = [evaluate({}, { weights, cut: [0, 2] }), evaluate({}, { weights, cut: [2, 4] })];
    expect(first.loss + second.loss).toBeCloseTo(whole.loss, 6);
    expect([...first.dCandidates!, ...second.dCandidates!]).toEqual([...whole.dCandidates!]);
    const plain = evaluate({});
    whole.dCandidates!.forEach((d, k) => {
      expect(d).toBeCloseTo(plain.dCandidates![k]! * weights[Math.floor(k / 3)]!, 6);
    });
  });

  it("with policyGradient is an advantage of the policy's own token, and candidates have no gradient", () => {
    const { dLogprobs, dCandidates } = evaluate({ policyGradient: true });
    expect(dCandidates).toBeUndefined();
    sums().forEach((value, i) => {
      expect(dLogprobs[i]).toBeCloseTo(Math.max(0, value) / 4, 6);
    });
  });

  it("leaves tokens of observations to their own term", () => {
    const plain = evaluate({});
    const { dCandidates, dLogprobs } = evaluate({}, { observed: [0, 0, 1, 0] });
    dCandidates!.forEach((d, k) => {
      expect(d).toBeCloseTo(Math.floor(k / 3) === 2 ? 0 : plain.dCandidates![k]!, 6);
    });
    expect(dLogprobs[2]).toBeCloseTo(-0.1, 6);
  });

  it("ignores what the teacher never says", () => {
    const own = policy.map((x, k) => (k === 5 ? Number.NEGATIVE_INFINITY : x));
    teacher[5] = Number.NEGATIVE_INFINITY;
    const { loss, dCandidates } = evaluate({}, { own });
    expect(loss).toBeGreaterThan(0);
    expect(dCandidates![5]).toBe(0);
    teacher[5] = -4;
  });

  it("with the whole vocabulary is KL(teacher || policy), and has its gradient by the logits", () => {
    const logits = [0.4, -1, 1.3, 0.1];
    const wanted = [0.1, 0.2, 0.3, 0.4];
    const softmax = (x: readonly number[]) => {
      const sum = x.reduce((a, b) => a + Math.exp(b), 0);
      return x.map((value) => Math.exp(value) / sum);
    };
    const divergence = (x: readonly number[]) => {
      const q = softmax(x);
      return wanted.reduce((sum, p, i) => sum + p * Math.log(p / q[i]!), 0);
    };
    const loss = composePolicyLoss(
      losses.ppo({ teacher: { estimate: "forward_kl_topk", topk: 4, taskRewards: false } }),
    );
    const q = softmax(logits);
    const one = Float32Array.of(-1);
    const found = loss({
      sequenceIndices: Int32Array.of(0),
      offsets: Int32Array.of(0, 1),
      logprobs: one,
      entropy: one,
      columns: { oldLogprobs: one, advantages: one },
      candidates: {
        count: 4,
        ids: Int32Array.of(0, 1, 2, 3),
        logprobs: Float32Array.from(q, Math.log),
        columns: { teacherLogprobs: Float32Array.from(wanted, Math.log) },
      },
      totals: { tokens: 1, sequences: 1 },
    });
    expect(found.loss).toBeCloseTo(divergence(logits), 6);
    expect(found.metrics!.teacher_mass).toBeCloseTo(1, 6);
    const slopes = [...found.dCandidates!];
    const total = slopes.reduce((sum, slope) => sum + slope, 0);
    logits.forEach((_, j) => {
      const at = (h: number) => divergence(logits.map((x, k) => (k === j ? x + h : x)));
      expect(slopes[j]! - total * q[j]!).toBeCloseTo((at(1e-5) - at(-1e-5)) / 2e-5, 6);
    });
  });

  it("says that candidates are missing", () => {
    const loss = composePolicyLoss(losses.ppo({ teacher: { estimate: "forward_kl_topk" } }));
    const one = Float32Array.of(-1);
    const columns = { oldLogprobs: one, advantages: one, teacherLogprobs: one };
    const inputs = { sequenceIndices: Int32Array.of(0), offsets: Int32Array.of(0, 1), logprobs: one, entropy: one };
    expect(() => loss({ ...inputs, columns, totals: { tokens: 1, sequences: 1 } })).toThrow(
      expect.objectContaining({ code: "data/missing-column", subject: "candidates with a column teacherLogprobs" }),
    );
  });
});
