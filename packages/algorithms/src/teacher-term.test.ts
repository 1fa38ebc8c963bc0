import { describe, expect, it } from "vitest";
import { composePolicyLoss, losses, type TeacherTermOptions, teacherTermDefaults, weighTurns } from "./internal.js";

const tokens = {
  logprobs: [-0.3, -1.2, -2.5, -0.05, -4, -0.7],
  oldLogprobs: [-0.35, -1.3, -2.5, -0.05, -3.8, -0.9],
  teacherLogprobs: [-0.9, -0.2, -2.4, -3, -1, -0.71],
  advantages: [1, 1, 1, -0.5, -0.5, -0.5],
  teacherWeights: [1, 1, 1, 0.5, 0.5, 1.2],
};

/** Evaluates the sequences [0, 3) and [3, 6), or those of `cut`, as one micro-batch. */
function evaluate(
  teacher: Partial<TeacherTermOptions>,
  { logprobs = tokens.logprobs, weights = true, cut = [0, 6] as [number, number] } = {},
) {
  const loss = composePolicyLoss(losses.ppo({ entropy: 0.01, teacher }));
  const part = (values: readonly number[]) => Float32Array.from(values.slice(...cut));
  const count = (cut[1] - cut[0]) / 3;
  return loss({
    sequenceIndices: Int32Array.from({ length: count }, (_, i) => i),
    offsets: Int32Array.from({ length: count + 1 }, (_, i) => 3 * i),
    logprobs: part(logprobs),
    entropy: part([0.5, 0.6, 0.7, 0.1, 2, 1]),
    columns: {
      oldLogprobs: part(tokens.oldLogprobs),
      advantages: part(tokens.advantages),
      teacherLogprobs: part(tokens.teacherLogprobs),
      ...(weights ? { teacherWeights: part(tokens.teacherWeights) } : {}),
    },
    totals: { tokens: 6, sequences: 2 },
  });
}

describe("the teacher's term", () => {
  it.each([
    { estimate: "k1" },
    { estimate: "k2", coefficient: 0.3 },
    { estimate: "k3", coefficient: 2 },
    { estimate: "k3", maxLoss: 1 },
    { estimate: "k3", minLogprob: -2 },
    { estimate: "k3", taskRewards: false },
    { estimate: "abs", taskRewards: false, coefficient: 5 },
  ])("has the derivative that finite differences find: %o", (teacher) => {
    const { dLogprobs } = evaluate(teacher);
    const h = 1e-3;
    tokens.logprobs.forEach((_, i) => {
      const shift = (by: number) =>
        evaluate(teacher, { logprobs: tokens.logprobs.map((x, k) => (k === i ? x + by : x)) });
      expect(dLogprobs[i]!).toBeCloseTo((shift(h).loss - shift(-h).loss) / (2 * h), 3);
    });
  });

  it("is added to the task's loss with its weight, or stands alone", () => {
    const task = composePolicyLoss(losses.ppo({ entropy: 0.01 }));
    const of = { ...tokens };
    const alone = task({
      sequenceIndices: Int32Array.of(0, 1),
      offsets: Int32Array.of(0, 3, 6),
      logprobs: Float32Array.from(of.logprobs),
      entropy: Float32Array.from([0.5, 0.6, 0.7, 0.1, 2, 1]),
      columns: { oldLogprobs: Float32Array.from(of.oldLogprobs), advantages: Float32Array.from(of.advantages) },
      totals: { tokens: 6, sequences: 2 },
    });
    const mixed = evaluate({ coefficient: 0.25 });
    const taught = evaluate({ coefficient: 0.25, taskRewards: false });
    expect(mixed.loss).toBeCloseTo(alone.loss + 0.25 * taught.loss, 6);
    expect(taught.loss).toBeCloseTo(taught.metrics!.teacher_loss!, 6);
    mixed.dLogprobs.forEach((d, i) => {
      expect(d).toBeCloseTo(alone.dLogprobs[i]! + 0.25 * taught.dLogprobs[i]!, 6);
    });
    expect(taught.dEntropy).toBeUndefined();
  });

  it("adds up over micro-batches", () => {
    for (const teacher of [{}, { policyGradient: true, estimate: "k1" }]) {
      const whole = evaluate(teacher);
      const [first, second] = [evaluate(teacher, { cut: [0, 3] }), evaluate(teacher, { cut: [3, 6] })];
      expect(first.loss + second.loss).toBeCloseTo(whole.loss, 6);
      expect([...first.dLogprobs, ...second.dLogprobs]).toEqual([...whole.dLogprobs]);
      expect(first.metrics!.teacher_divergence! + second.metrics!.teacher_divergence!).toBeCloseTo(
        whole.metrics!.teacher_divergence!,
        6,
      );
    }
  });

  it("learns minus the divergence as an advantage, within its own clips", () => {
    const teacher = { policyGradient: true, estimate: "k1", taskRewards: false };
    const { dLogprobs } = evaluate(teacher, { weights: false });
    tokens.logprobs.forEach((own, i) => {
      const advantage = tokens.teacherLogprobs[i]! - own;
      const ratio = Math.exp(own - tokens.oldLogprobs[i]!);
      const isClipped = (advantage > 0 && ratio > 1.2) || (advantage < 0 && ratio < 0.8);
      expect(dLogprobs[i]!).toBeCloseTo(isClipped ? 0 : (-advantage * ratio) / 6, 5);
    });
    // The second token is likelier than before, and the teacher likes it: the ratio of 1.1 is within the usual bounds alone.
    const narrow = evaluate({ ...teacher, clipRatioLow: 0.01, clipRatioHigh: 0.01 }, { weights: false });
    expect([...narrow.dLogprobs]).not.toEqual([...dLogprobs]);
  });

  it("replaces the KL term without the task's rewards: no reference is needed", () => {
    const kl = { coefficient: 0.5 };
    const teacher = { taskRewards: false };
    const inputs = (columns: Record<string, Float32Array>) => ({
      sequenceIndices: Int32Array.of(0),
      offsets: Int32Array.of(0, 1),
      logprobs: Float32Array.of(-1),
      entropy: Float32Array.of(1),
      columns: { oldLogprobs: Float32Array.of(-1), advantages: Float32Array.of(1), ...columns },
      totals: { tokens: 1, sequences: 1 },
    });
    const columns = inputs({ teacherLogprobs: Float32Array.of(-2) });
    const evaluated = composePolicyLoss(losses.ppo({ kl, teacher }))(columns);
    expect(evaluated).toEqual(composePolicyLoss(losses.ppo({ teacher }))(columns));
    expect(() => composePolicyLoss(losses.ppo({ kl, teacher: {} }))(columns)).toThrow(
      expect.objectContaining({ code: "data/missing-column" }),
    );
  });

  it("refuses a loss that needs the whole mini-batch", () => {
    expect(() => evaluate({ policyGradient: true, lossMode: "clip_cov" })).toThrow(
      expect.objectContaining({ code: "config/bad-value" }),
    );
    expect(() => composePolicyLoss({ ...losses.ppo(), teacher: { ...teacherTermDefaults, estimate: "k9" } })).toThrow(
      expect.objectContaining({ code: "config/unknown-name", subject: "teacher: estimate" }),
    );
  });

  it("says which column is missing", () => {
    const loss = composePolicyLoss(losses.ppo({ teacher: {} }));
    const one = Float32Array.of(-1);
    const inputs = { sequenceIndices: Int32Array.of(0), offsets: Int32Array.of(0, 1), logprobs: one, entropy: one };
    const columns = { oldLogprobs: one, advantages: one };
    expect(() => loss({ ...inputs, columns, totals: { tokens: 1, sequences: 1 } })).toThrow(
      expect.objectContaining({ code: "data/missing-column" }),
    );
  });
});

describe("the mean gradient over all tokens that the policy may say", () => {
  const logits = [0.4, -1, 1.3, 0.1];
  const teacher = [0.1, 0.2, 0.3, 0.4];
  const softmax = (x: readonly number[]) => {
    const sum = x.reduce((a, b) => a + Math.exp(b), 0);
    return x.map((value) => Math.exp(value) / sum);
  };

  /** By logit: the expectation of d loss / d logprob times d logprob / d logit. */
  function averageGradient(options: Partial<TeacherTermOptions>): number[] {
    const p = softmax(logits);
    const loss = composePolicyLoss(losses.ppo({ teacher: { ...options, taskRewards: false } }));
    const gradient = logits.map(() => 0);
    p.forEach((probability, token) => {
      const own = Float32Array.of(Math.log(probability));
      const { dLogprobs } = loss({
        sequenceIndices: Int32Array.of(0),
        offsets: Int32Array.of(0, 1),
        logprobs: own,
        entropy: Float32Array.of(1),
        columns: { oldLogprobs: own, advantages: own, teacherLogprobs: Float32Array.of(Math.log(teacher[token]!)) },
        totals: { tokens: 1, sequences: 1 },
      });
      logits.forEach((_, j) => {
        gradient[j]! += probability * dLogprobs[0]! * ((j === token ? 1 : 0) - p[j]!);
      });
    });
    return gradient;
  }

  function differentiate(divergence: (p: readonly number[]) => number): number[] {
    const at = (j: number, h: number) => divergence(softmax(logits.map((x, k) => (k === j ? x + h : x))));
    return logits.map((_, j) => (at(j, 1e-5) - at(j, -1e-5)) / 2e-5);
  }

  const reverse = differentiate((p) => p.reduce((sum, x, i) => sum + x * Math.log(x / teacher[i]!), 0));
  const forward = differentiate((p) => teacher.reduce((sum, q, i) => sum + q * Math.log(q / p[i]!), 0));

  it.each([
    ["KL(policy || teacher)", "k1 as an advantage", { estimate: "k1", policyGradient: true }, reverse],
    ["KL(policy || teacher)", "k2", { estimate: "k2" }, reverse],
    ["KL(teacher || policy)", "k3", { estimate: "k3" }, forward],
    ["nothing", "k1", { estimate: "k1" }, [0, 0, 0, 0]],
  ])("is that of %s with %s", (_divergence, _how, options, expected) => {
    averageGradient(options).forEach((value, j) => {
      expect(value).toBeCloseTo(expected[j]!, 5);
    });
  });
});

describe("weights of turns", () => {
  it("fall where the policy has drifted from the teacher, and rise to 1 + delta at most: SOD's own values", () => {
    const turns = [
      { start: 1, end: 3 },
      { start: 4, end: 5 },
      { start: 6, end: 8 },
    ];
    const teacher = [0, -1, -1, 0, -1, 0, -1, -1];
    const policy = [0, -1.1, -0.9, 0, -1.2, 0, -1.05, -0.95];
    const weights = weighTurns(policy, teacher, turns, 0.2);
    [0, 1, 1, 0, 0.5, 0, 1.2, 1.2].forEach((weight, t) => {
      expect(weights[t]!).toBeCloseTo(weight, 5);
    });
  });

  it("are finite where policy and teacher agree", () => {
    const turns = [
      { start: 0, end: 1 },
      { start: 1, end: 2 },
    ];
    expect([...weighTurns([-1, -1], [-1, -1], turns, 0.2)]).toEqual([1, 1]);
    expect([...weighTurns([-1, -1], [-1, -2], turns, 0.2)]).toEqual([1, 0]);
    expect(weighTurns([-1, -1], [-2, -1], turns, 0.2)[1]).toBeCloseTo(1.2, 5);
    expect([...weighTurns([], [], [], 0.2)]).toEqual([]);
  });
});
