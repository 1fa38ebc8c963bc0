import type { Trajectory, TrajectorySegment, TurnRecord } from "@cria/core";
import { describe, expect, it } from "vitest";
import { creditMultiTrajectories } from "./credit-multi-trajectories.js";

const segment = (start: number, end: number, parent: number): TrajectorySegment => ({
  start,
  end,
  parent,
  messages: [],
});

const answer = (start: number, end: number, last: boolean): TurnRecord => ({
  ...{ role: "assistant", start, end, startedAt: 0, endedAt: 0 },
  call: { messages: 1, sibling: 0, request: {}, ...(last ? { last: true } : {}) },
});

const plain = (outcome: number) => ({
  uid: "a",
  responseMask: Uint8Array.of(0, 1),
  turnScores: [],
  rewards: { outcome, length: 0, tools: 0, turns: 0 },
});

/**
 * Prompt, answer [1], which goes on as [2] and as [3, 4], and another conversation [5, 6]; rewards 1, 2, 4 and 8 of these
 * answers, and 100 for the episode.
 */
function branch(last: 2 | 3 | 6, mask = [0, 1, 1, 1, 1, 0, 1], weight = 1) {
  const values = [1, 2, 4, 8];
  return {
    uid: "a",
    responseMask: Uint8Array.from(mask),
    segments: [segment(0, 2, -1), segment(2, 3, 0), segment(3, 5, 0), segment(5, 7, -1)],
    turnScores: [1, 2, 4, 6].map((tokenIndex, k) => ({ value: values[k]!, tokenIndex })),
    rewards: { outcome: 90, length: 7, tools: 3, turns: 15 * weight },
    timeline: {
      loop: [],
      request: [],
      turns: [answer(1, 2, false), answer(2, 3, last === 2), answer(3, 5, last === 3), answer(6, 7, last === 6)],
    } satisfies Trajectory["timeline"],
  };
}

const round = (values: Float32Array) => [...values].map((x) => Number(x.toFixed(4)));

describe("creditMultiTrajectories", () => {
  it.each([
    [2, 103],
    [3, 105],
    [6, 108],
  ] as const)("takes the episode's reward and those along the last conversation: it ends at %i", (last, value) => {
    const { advantages } = creditMultiTrajectories([branch(last), plain(0)], { normalizeByStd: false });
    const half = value / 2;
    expect(round(advantages)).toEqual([0, half, half, half, half, 0, half, 0, -half]);
  });

  it("has the values of verl's own test: sessions with one and two outputs", () => {
    const outputs: [rewards: number[], mask: number[]][][] = [
      [
        [
          [100, 0, 0, 0],
          [1, 0, 0, 0],
        ],
        [
          [1, 2, 3, 4],
          [1, 1, 1, 1],
        ],
      ],
      [
        [
          [200, 200, 0, 0],
          [1, 0, 1, 0],
        ],
        [
          [150, 0, 0, 150],
          [0, 1, 0, 1],
        ],
      ],
      [
        [
          [4, 5, 6, 7],
          [1, 1, 0, 1],
        ],
      ],
      [
        [
          [8, 9, 10, 11],
          [0, 0, 0, 0],
        ],
      ],
    ];
    const sessions = outputs.map((rows) => {
      const values = rows.flatMap(([rewards]) => rewards);
      return {
        uid: "a",
        responseMask: Uint8Array.from(rows.flatMap(([, mask]) => mask)),
        segments: rows.map((_, k) => segment(4 * k, 4 * k + 4, -1)),
        turnScores: values.map((value, tokenIndex) => ({ value, tokenIndex })),
        rewards: { outcome: 0, length: 0, tools: 0, turns: values.reduce((sum, value) => sum + value, 0) },
      };
    });
    const { advantages } = creditMultiTrajectories(sessions);
    // The last outputs' sums are 10, 300, 22 and 38: mean 92.5, unbiased deviation 138.8128716...
    const deviation = Math.sqrt((82.5 ** 2 + 207.5 ** 2 + 70.5 ** 2 + 54.5 ** 2) / 3);
    const expected = [10, 300, 22, 38].flatMap((sum, i) =>
      Array.from(sessions[i]!.responseMask, (bit) => (bit * (sum - 92.5)) / deviation),
    );
    for (const [t, value] of expected.entries()) expect(advantages[t]).toBeCloseTo(value, 5);
    expect(advantages).toHaveLength(expected.length);
  });

  it("weighs rewards of answers as reward_model does", () => {
    const given = [branch(3, undefined, 0.5), plain(0)];
    expect(round(creditMultiTrajectories(given, { normalizeByStd: false }).advantages)[1]).toBe(102.5 / 2);
  });

  it("divides by the group's deviation by default", () => {
    const { advantages, returns } = creditMultiTrajectories([branch(2), plain(0), plain(50)]);
    const mean = 153 / 3;
    const deviation = Math.sqrt(((103 - mean) ** 2 + mean ** 2 + (50 - mean) ** 2) / 2);
    expect(advantages[1]).toBeCloseTo((103 - mean) / deviation, 5);
    expect(advantages[10]).toBeCloseTo((50 - mean) / deviation, 5);
    expect(returns).toEqual(advantages);
  });

  it("gives 0 where nothing of the last conversation is trained on, and its reward still counts in the group", () => {
    const given = [branch(6, [0, 1, 1, 1, 1, 0, 0]), plain(0)];
    const { advantages } = creditMultiTrajectories(given, { normalizeByStd: false });
    expect(round(advantages)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, -54]);
  });

  it("takes the last segment where no calls are recorded", () => {
    const { timeline: _, ...silent } = branch(2);
    const { advantages } = creditMultiTrajectories([silent, plain(0)], { normalizeByStd: false });
    expect(advantages[1]).toBe(54);
  });
});
