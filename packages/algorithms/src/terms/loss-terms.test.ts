import type { LossInputs } from "@cria/core";
import { describe, expect, it } from "vitest";
import {
  composePolicyLoss,
  crossEntropyLoss,
  type LossTerm,
  losses,
  type PolicyLossOptions,
  preparePolicyLoss,
} from "../internal.js";

const [SAMPLED, OBSERVED, DEMONSTRATED] = [0, 1, 2];

/** Tokens of four sequences: two of rows, one with an observed token, and two that demonstrate. */
const sequences = [
  { logprobs: [-0.3, -1.2, -0.8], advantage: 1, kinds: [SAMPLED, OBSERVED, SAMPLED] },
  { logprobs: [-0.05, -0.7], advantage: -0.5, kinds: [SAMPLED, SAMPLED] },
  { logprobs: [-2, -1.5], advantage: 0, kinds: [DEMONSTRATED, DEMONSTRATED] },
  { logprobs: [-3], advantage: 0, kinds: [DEMONSTRATED] },
];

interface Case {
  /** Places of the sequences of this micro-batch; default: all. */
  places?: readonly number[];
  /** Weights of each sequence in terms. */
  weights?: Record<string, readonly number[]>;
  /** Sequences of the mini-batch; default: all. */
  whole?: readonly number[];
  shift?: { sequence: number; token: number; by: number };
}

function makeInputs({ places = [0, 1, 2, 3], weights = {}, whole = [0, 1, 2, 3], shift }: Case = {}): LossInputs {
  const taken = places.map((s) => sequences[s]!);
  const spread = (pick: (s: number) => readonly number[]) => Float32Array.from(places.flatMap((s) => pick(s)));
  const logprobs = spread((s) =>
    sequences[s]!.logprobs.map((x, t) => x + (shift?.sequence === s && shift.token === t ? shift.by : 0)),
  );
  const ofRows = Object.entries(weights).map(([name, values]) => [
    `weight/${name}`,
    spread((s) => sequences[s]!.logprobs.map(() => values[s]!)),
  ]);
  const countKind = (kind: number, name: string) => {
    const tokens = whole
      .filter((s) => weights[name]?.[s] !== 0)
      .map((s) => sequences[s]!.kinds.filter((own) => own === kind).length);
    return { tokens: tokens.reduce((a, b) => a + b, 0), sequences: tokens.filter((n) => n > 0).length };
  };
  return {
    sequenceIndices: Int32Array.from(places),
    offsets: Int32Array.from([0, ...taken.map((_, i) => taken.slice(0, i + 1).flatMap((s) => s.logprobs).length)]),
    logprobs,
    entropy: spread((s) => sequences[s]!.logprobs.map((_, t) => 0.5 + s + t)),
    columns: {
      oldLogprobs: spread((s) => sequences[s]!.logprobs.map((x, t) => x - 0.05 * (t + 1))),
      advantages: spread((s) => sequences[s]!.logprobs.map(() => sequences[s]!.advantage)),
      refLogprobs: spread((s) => sequences[s]!.logprobs.map((x, t) => x + 0.1 * (t - 1))),
      tokenKind: spread((s) => sequences[s]!.kinds),
      ...Object.fromEntries(ofRows),
    },
    totals: {
      ...countKind(SAMPLED, ""),
      terms: {
        observations: countKind(OBSERVED, "observations"),
        demonstrations: countKind(DEMONSTRATED, "demonstrations"),
        shown: countKind(DEMONSTRATED, "shown"),
        ...Object.fromEntries(
          Object.keys(weights)
            .filter((name) => name !== "observations" && name !== "demonstrations")
            .map((name) => [name, countKind(SAMPLED, name)]),
        ),
      },
    },
  };
}

const mixed = (more: Partial<PolicyLossOptions> = {}): PolicyLossOptions => ({
  ...losses.ppo({ entropy: 0.01, observations: 0.1, demonstrations: 0.3, kl: { coefficient: 0.02 } }),
  ...more,
});

/** Compares each token's gradient with central differences of the loss. */
function expectDerivative(options: PolicyLossOptions, given: Case = {}) {
  const evaluate = composePolicyLoss(options);
  const { dLogprobs } = evaluate(makeInputs(given));
  const h = 1e-3;
  let at = 0;
  for (const s of given.places ?? [0, 1, 2, 3])
    for (let t = 0; t < sequences[s]!.logprobs.length; t++) {
      const [up, down] = [h, -h].map((by) => evaluate(makeInputs({ ...given, shift: { sequence: s, token: t, by } })));
      expect(dLogprobs[at++]!).toBeCloseTo((up!.loss - down!.loss) / (2 * h), 3);
    }
}

describe("the terms of a loss", () => {
  it("have the derivative that finite differences find, together and with weights of rows", () => {
    expectDerivative(mixed());
    const weights = { policy: [0.5, 2, 1, 1], reference: [0, 1, 1, 1], observations: [3, 1, 1, 1] };
    expectDerivative(mixed({ lossAggMode: "seq-mean-token-mean" }), { weights });
    expectDerivative(mixed({ lossMode: "gspo" }), { weights });
  });

  it("add up over micro-batches, whatever is in them", () => {
    const given: Case["weights"][] = [undefined, { policy: [0, 1, 1, 1], entropy: [2, 0, 1, 1] }];
    for (const weights of given) {
      const evaluate = composePolicyLoss(mixed({ lossAggMode: "seq-mean-token-mean" }));
      const all = evaluate(makeInputs({ weights }));
      for (const cut of [
        [[0], [1, 2, 3]],
        [[0, 2], [1], [3]],
        [
          [2, 3],
          [0, 1],
        ],
      ]) {
        const parts = cut.map((places) => evaluate(makeInputs({ places, weights })));
        expect(parts.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(all.loss, 6);
        for (const name of Object.keys(all.metrics!))
          expect(parts.reduce((sum, { metrics }) => sum + (metrics![name] ?? 0), 0)).toBeCloseTo(
            all.metrics![name]!,
            6,
          );
      }
    }
  });

  it("of sampled tokens are, bit for bit, what they are without demonstrations and observations", () => {
    const { dLogprobs, metrics } = composePolicyLoss(mixed())(makeInputs());
    const alone = composePolicyLoss(mixed({ demonstrationCoeff: 0, observationCoeff: 0 }));
    const own = alone(makeInputs());
    const sampled = [0, 2, 3, 4];
    for (const i of sampled) expect(dLogprobs[i]).toBe(own.dLogprobs[i]);
    expect(metrics).toMatchObject({ pg_loss: own.metrics!.pg_loss, kl_loss: own.metrics!.kl_loss });
    // Tokens that no term sees have no gradient.
    for (const i of [1, 5, 6, 7]) expect(own.dLogprobs[i]).toBe(0);
  });

  it("of demonstrations are supervised fine-tuning: the mean of -logprob over their tokens", () => {
    const { dLogprobs, metrics } = composePolicyLoss(mixed())(makeInputs());
    expect(metrics!.demonstration_loss).toBeCloseTo((2 + 1.5 + 3) / 3, 6);
    for (const i of [5, 6, 7]) expect(dLogprobs[i]).toBeCloseTo(-0.3 / 3, 6);
    const shown = makeInputs({ places: [2, 3] });
    const alone = crossEntropyLoss({ ...shown, totals: { tokens: 3, sequences: 2 } });
    const composed = composePolicyLoss({ ...losses.ppo(), demonstrationCoeff: 1 })(shown);
    expect(composed.loss).toBeCloseTo(alone.loss, 6);
    composed.dLogprobs.forEach((d, i) => {
      expect(d).toBeCloseTo(alone.dLogprobs[i]!, 6);
    });
  });

  it("leave out rows of weight 0, from the denominators too", () => {
    const weights = { policy: [1, 0, 1, 1], entropy: [1, 0, 1, 1], reference: [1, 0, 1, 1] };
    const options = mixed({ demonstrationCoeff: 0, observationCoeff: 0 });
    for (const lossAggMode of ["token-mean", "seq-mean-token-sum"]) {
      const evaluate = composePolicyLoss({ ...options, lossAggMode });
      const weighed = evaluate(makeInputs({ weights }));
      const without = evaluate(makeInputs({ places: [0], whole: [0] }));
      expect(weighed.loss).toBe(without.loss);
      // Also where no gradient shows it: ratios that are measured, and means.
      expect(weighed.metrics).toEqual(without.metrics);
      expect([...weighed.dLogprobs.subarray(0, 3)]).toEqual([...without.dLogprobs]);
      expect([...weighed.dLogprobs.subarray(3, 5)]).toEqual([0, 0]);
    }
  });

  it("multiply a row's part by its weight", () => {
    const options = mixed({ entropyCoeff: 0, kl: null, demonstrationCoeff: 0, observationCoeff: 0 });
    const plain = composePolicyLoss(options)(makeInputs());
    const { dLogprobs } = composePolicyLoss(options)(makeInputs({ weights: { policy: [3, 1, 1, 1] } }));
    [0, 2].forEach((i) => {
      expect(dLogprobs[i]).toBeCloseTo(3 * plain.dLogprobs[i]!, 6);
    });
    [3, 4].forEach((i) => {
      expect(dLogprobs[i]).toBe(plain.dLogprobs[i]);
    });
  });

  it("prepare statistics of the mini-batch without rows of weight 0", () => {
    const options = { ...losses.clipCov({ ratio: 0.5, lower: -100, upper: 100 }) };
    const make = (weight: number) => ({
      tokenIds: Int32Array.of(1, 2, 3, 4),
      lossMask: Uint8Array.of(0, 1, 1, 1),
      columns: {
        advantages: Float32Array.of(0, 1, -2, 3),
        oldLogprobs: Float32Array.of(0, -1, -2, -3),
        "weight/policy": new Float32Array(4).fill(weight),
      },
    });
    const logprobs = [Float32Array.of(0, -1, -2, -3), Float32Array.of(0, -3, -1, -9)];
    const draws = [0.3, 0.9, 0.1, 0.5, 0.7, 0.2];
    const prepare = (given: ReturnType<typeof make>[]) => {
      let next = 0;
      return preparePolicyLoss(options, given, logprobs, () => draws[next++ % draws.length]!);
    };
    const [first, second] = prepare([make(1), make(0)]);
    const [alone] = prepare([make(1)]);
    const added = Object.keys(alone!.columns!).filter((name) => !(name in make(1).columns));
    expect(added.length).toBeGreaterThan(0);
    for (const name of added) {
      expect(first!.columns![name]).toEqual(alone!.columns![name]);
      expect([...(second!.columns![name] as Float32Array)]).toEqual([0, 0, 0, 0]);
    }
  });
});

describe("a term of one's own", () => {
  /** The squared distance of each logprob from -1. */
  const term: LossTerm = {
    evaluate: ({ logprobs }) => ({
      losses: logprobs.map((x) => (x + 1) ** 2),
      gradients: logprobs.map((x) => 2 * (x + 1)),
      metrics: { far: logprobs.map((x) => (x < -1 ? 1 : 0)) },
    }),
  };

  it("is added with its weight, and measured under its name", () => {
    const terms = { near: { term, coefficient: 0.5 } };
    const plain = composePolicyLoss(mixed())(makeInputs());
    const { loss, metrics } = composePolicyLoss(mixed({ terms }))(makeInputs());
    const mean = (0.7 ** 2 + 0.2 ** 2 + 0.95 ** 2 + 0.3 ** 2) / 4;
    expect(metrics!["loss_terms/near"]).toBeCloseTo(mean, 6);
    expect(metrics!["loss_terms/near/far"]).toBe(0);
    expect(loss).toBeCloseTo(plain.loss + 0.5 * mean, 6);
    expectDerivative(mixed({ terms }), { weights: { near: [2, 0, 1, 1] } });
  });

  it("sees only sequences in which it sees a token", () => {
    const seen: [number[], number[]][] = [];
    const watching: LossTerm = {
      evaluate: (inputs) => {
        seen.push([[...inputs.sequenceIndices], [...inputs.offsets]]);
        return { losses: inputs.logprobs, gradients: inputs.logprobs };
      },
    };
    const evaluate = (tokens: LossTerm["tokens"], weights = {}) =>
      composePolicyLoss(mixed({ terms: { shown: { term: { ...watching, tokens }, coefficient: 1 } } }))(
        makeInputs({ weights }),
      );
    evaluate("sampled");
    evaluate("sampled", { shown: [0, 1, 1, 1] });
    evaluate("demonstrated");
    expect(seen).toEqual([
      [
        [0, 1],
        [0, 2, 4],
      ],
      [[1], [0, 2]],
      [
        [2, 3],
        [0, 2, 3],
      ],
    ]);
  });

  it("sees the kind of tokens that it names, and with the weight 0 is only measured", () => {
    const shown: LossTerm = { ...term, tokens: "demonstrated", aggregation: "token-mean" };
    expectDerivative(mixed({ terms: { shown: { term: shown, coefficient: 2 } } }));
    const plain = composePolicyLoss(mixed())(makeInputs());
    const measured = composePolicyLoss(mixed({ terms: { shown: { term: shown, coefficient: 0 } } }))(makeInputs());
    expect([measured.loss, ...measured.dLogprobs]).toEqual([plain.loss, ...plain.dLogprobs]);
    expect(measured.metrics!["loss_terms/shown"]).toBeCloseTo((1 + 0.25 + 4) / 3, 6);
    expect(measured.metrics!["loss_terms/shown/far"]).toBe(1);
  });

  it.each<[string, LossTerm["evaluate"], string]>([
    ["too few losses", () => ({ losses: [1], gradients: [0, 0, 0, 0] }), "1 numbers"],
    ["no gradients", () => ({ losses: [0, 0, 0, 0] }) as never, "none"],
    ["nothing", () => undefined as never, "none"],
    ["a gradient that is no number", () => ({ losses: [0, 0, 0, 0], gradients: [0, Number.NaN, 0, 0] }), "NaN"],
    ["an infinite loss", () => ({ losses: [0, 1 / 0, 0, 0], gradients: [0, 0, 0, 0] }), "Infinity"],
  ])("that returns %s is refused", (_, evaluate, received) => {
    const options = mixed({ terms: { broken: { term: { evaluate }, coefficient: 1 } } });
    expect(() => composePolicyLoss(options)(makeInputs())).toThrow(
      expect.objectContaining({ code: "config/bad-loss-term", received }),
    );
  });

  it("cannot have the name of a built-in one, nor an unknown name of its own", () => {
    for (const name of ["policy", "teacher", "demonstrations", ""])
      expect(() => composePolicyLoss(mixed({ terms: { [name]: { term, coefficient: 1 } } }))).toThrow(
        expect.objectContaining({ code: "config/bad-value" }),
      );
    expect(() => composePolicyLoss(mixed({ terms: { mine: { term: "nobody", coefficient: 1 } } }))).toThrow(
      expect.objectContaining({ code: "config/unknown-name" }),
    );
  });
});
