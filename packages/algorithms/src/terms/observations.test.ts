import type { LossInputs } from "@cria/core";
import { describe, expect, it } from "vitest";
import { composePolicyLoss, losses, TOKEN_KIND } from "../internal.js";

/** Two sequences, of four and two tokens; the marked ones were observed. */
const tokens = {
  logprobs: [-0.3, -1.2, -2.5, -0.05, -4, -0.7],
  oldLogprobs: [-0.35, 0, 0, -0.05, 0, -0.9],
  advantages: [1, 0, 0, 1, 0, -0.5],
  entropy: [0.5, 0.6, 0.7, 0.1, 2, 1],
  tokenKind: [0, 1, 1, 0, 1, 0],
};

type Column = keyof typeof tokens;

/** Tokens at `places`, cut into sequences at `offsets`, as a micro-batch of both sequences. */
function takeTokens(places: readonly number[], offsets: readonly number[], logprobs = tokens.logprobs): LossInputs {
  const column = (values: readonly number[]) => Float32Array.from(places, (i) => values[i]!);
  const names: Column[] = ["oldLogprobs", "advantages", "tokenKind"];
  return {
    sequenceIndices: Int32Array.from({ length: offsets.length - 1 }, (_, i) => i),
    offsets: Int32Array.from(offsets),
    logprobs: column(logprobs),
    entropy: column(tokens.entropy),
    columns: Object.fromEntries(names.map((name) => [name, column(tokens[name])])),
    totals: { tokens: 3, sequences: 2, terms: { observations: { tokens: 3, sequences: 2 } } },
  };
}

const whole = (logprobs?: number[]) => takeTokens([0, 1, 2, 3, 4, 5], [0, 4, 6], logprobs);
const policyLoss = composePolicyLoss(losses.ppo({ entropy: 0.01 }));
const withTerm = composePolicyLoss(losses.ppo({ entropy: 0.01, observations: 0.1 }));

describe("the term of observations", () => {
  it("is the mean of -logprob over the observed tokens, times its weight", () => {
    const { metrics, dLogprobs, loss } = withTerm(whole());
    const mean = (1.2 + 2.5 + 4) / 3;
    expect(metrics!.observation_loss).toBeCloseTo(mean, 6);
    for (const i of [1, 2, 4]) expect(dLogprobs[i]).toBeCloseTo(-0.1 / 3, 7);
    const sampled = takeTokens([0, 3, 5], [0, 2, 3]);
    expect(loss).toBeCloseTo(policyLoss(sampled).loss + 0.1 * mean, 6);
  });

  it("leaves the policy loss as it is without the observed tokens, bit for bit", () => {
    const { dLogprobs, dEntropy, metrics } = withTerm(whole());
    const own = policyLoss(takeTokens([0, 3, 5], [0, 2, 3]));
    expect([0, 3, 5].map((i) => dLogprobs[i])).toEqual([...own.dLogprobs]);
    expect([0, 3, 5].map((i) => dEntropy![i])).toEqual([...own.dEntropy!]);
    expect([1, 2, 4].map((i) => dEntropy![i])).toEqual([0, 0, 0]);
    expect(metrics).toMatchObject(own.metrics!);
  });

  it("has the derivative that finite differences find", () => {
    const { dLogprobs } = withTerm(whole());
    const h = 1e-3;
    tokens.logprobs.forEach((_, i) => {
      const shift = (by: number) => withTerm(whole(tokens.logprobs.map((x, k) => (k === i ? x + by : x)))).loss;
      expect(dLogprobs[i]!).toBeCloseTo((shift(h) - shift(-h)) / (2 * h), 3);
    });
  });

  it("adds up over micro-batches, one of which may have only observed tokens", () => {
    const all = withTerm(whole());
    const parts = [withTerm(takeTokens([0, 1, 2, 3], [0, 4])), withTerm(takeTokens([4, 5], [0, 2]))];
    expect(parts[0]!.loss + parts[1]!.loss).toBeCloseTo(all.loss, 6);
    expect(parts.flatMap(({ dLogprobs }) => [...dLogprobs])).toEqual([...all.dLogprobs]);
    const observed = withTerm(takeTokens([1, 2], [0, 2]));
    expect([...observed.dLogprobs]).toEqual([...all.dLogprobs.subarray(1, 3)]);
    expect(Number.isFinite(observed.loss)).toBe(true);
  });

  it("is 0 where nothing was observed, and needs the mini-batch's number of observed tokens", () => {
    const sampled = takeTokens([0, 3, 5], [0, 2, 3]);
    const { loss, dLogprobs, metrics } = withTerm(sampled);
    expect([loss, ...dLogprobs]).toEqual([policyLoss(sampled).loss, ...policyLoss(sampled).dLogprobs]);
    expect(metrics!.observation_loss).toBe(0);
    const { [TOKEN_KIND]: _, ...columns } = sampled.columns;
    expect(withTerm({ ...sampled, columns }).loss).toBe(policyLoss(sampled).loss);
    const uncounted = { ...whole(), totals: { tokens: 3, sequences: 2 } };
    expect(() => withTerm(uncounted)).toThrow(expect.objectContaining({ code: "data/missing-total" }));
  });
});
