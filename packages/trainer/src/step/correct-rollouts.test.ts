import { defaultRolloutCorrection } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import { describe, expect, it } from "vitest";
import type { TokenScores } from "../policy/token-scores.js";
import { correctRollouts, OTHER_CLASS } from "./correct-rollouts.js";

const sampled = (rolloutLogprobs: number[], metrics = {}) =>
  ({
    tokenIds: new Int32Array(3),
    responseMask: Uint8Array.of(0, 1, 1),
    rolloutLogprobs: Float32Array.from(rolloutLogprobs),
    metrics,
  }) as Partial<Trajectory> as Trajectory;
const scored = { oldLogprobs: Float32Array.of(0, -1, -1) } as Partial<TokenScores> as TokenScores;

describe("correctRollouts", () => {
  const correction = { ...defaultRolloutCorrection, bypass: false };
  const own = sampled([0, -1, -1.5]);
  const foreign = sampled([0, -1.5, -9], { [OTHER_CLASS]: 1 });
  const scores = new Map([
    [0, scored],
    [1, scored],
  ]);

  it("weighs tokens by a sampler of another class, one by one and at most by 2; all others by 1", () => {
    const { weights } = correctRollouts([own, foreign], scores, correction);
    expect([...weights!.get(0)!]).toEqual([1, 1, 1]);
    expect([...weights!.get(1)!]).toEqual([1, Math.fround(Math.exp(0.5)), 2]);
  });

  it("weighs nothing without such a sampler, nor if the loss corrects", () => {
    expect(correctRollouts([own, own], scores, correction).weights).toBeNull();
    expect(correctRollouts([own, foreign], scores, { ...correction, bypass: true }).weights).toBeNull();
  });
});
