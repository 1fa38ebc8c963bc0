import type { GenerateResult } from "@cria/core";
import { describe, expect, it } from "vitest";
import { TrajectoryBuilder } from "./trajectory-builder.js";

const sampled = (...tokenIds: number[]): GenerateResult => ({
  tokenIds: Int32Array.from(tokenIds),
  logprobs: Float32Array.from(tokenIds, (id) => -id),
  text: "",
  finishReason: "stop",
  stats: { prefillTokens: 0, reusedTokens: 0, decodeTokens: tokenIds.length, queueMs: 0, prefillMs: 0, decodeMs: 0 },
});

describe("TrajectoryBuilder", () => {
  it("keeps prompt and response in one row of tokens, indices from the prompt's first", () => {
    const builder = new TrajectoryBuilder([90, 91, 92], 10);
    builder.addSampled(sampled(1, 2, 3), 0, { count: 1, start: 1, end: 3 }, false);
    builder.addObserved("tool", [50, 51], 0);
    builder.addSampled(sampled(4), 0);
    expect(builder.remaining).toBe(4);
    expect(builder.build()).toMatchObject({
      tokenIds: Int32Array.of(90, 91, 92, 1, 2, 3, 50, 51, 4),
      promptLength: 3,
      responseMask: Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 0, 1),
      rolloutLogprobs: Float32Array.of(0, 0, 0, -1, 0, 0, 0, 0, -4),
      turns: [
        { role: "assistant", start: 3, end: 6, toolCalls: { count: 1, start: 4, end: 6 } },
        { role: "tool", start: 6, end: 8 },
        { role: "assistant", start: 8, end: 9 },
      ],
    });
  });

  it("places a reward at its turn's last trained token, else at the nearest; nowhere without one", () => {
    const builder = new TrajectoryBuilder([90], 10);
    builder.addObserved("user", [50], 0);
    builder.addSampled(sampled(1, 2), 0);
    builder.addObserved("tool", [51], 0);
    const earned = [0, 1, 2].map((turn) => ({ value: turn, turn }));
    expect(builder.place(earned).map(({ tokenIndex }) => tokenIndex)).toEqual([2, 3, 3]);
    builder.clearMask();
    expect(builder.place(earned)).toEqual([]);
  });

  it("a conversation rewritten to less than its prompt has that as its prompt, and its whole budget", () => {
    const builder = new TrajectoryBuilder([90, 91, 92, 93], 5);
    builder.addSampled(sampled(1, 2), 0);
    expect(builder.cutFrom(1)).toBe(2);
    builder.addObserved("user", [60], 0);
    expect(builder.remaining).toBe(5);
    builder.addSampled(sampled(3), 0);
    expect(builder.build()).toMatchObject({
      tokenIds: Int32Array.of(90, 60, 3),
      promptLength: 2,
      responseMask: Uint8Array.of(0, 0, 1),
    });
  });
});
