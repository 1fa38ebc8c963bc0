import { advantageEstimators } from "@cria/algorithms";
import { creditNodes } from "@cria/algorithms/internal";
import type { Trajectory, TrajectorySegment } from "@cria/core";
import { describe, expect, it } from "vitest";
import { estimateAdvantages } from "./advantages.js";

const segment = (start: number, end: number, parent: number): TrajectorySegment => ({
  start,
  end,
  parent,
  messages: [],
});

function makeTrajectory(mask: number[], outcome: number, more: Partial<Trajectory> = {}): Trajectory {
  const turns = (more.turnScores ?? []).reduce((sum, { value }) => sum + value, 0);
  const tokenLevel = new Float64Array(mask.length);
  tokenLevel[mask.lastIndexOf(1)] = outcome;
  for (const { value, tokenIndex } of more.turnScores ?? []) tokenLevel[tokenIndex]! += value;
  return {
    uid: "a",
    tokenIds: new Int32Array(mask.length),
    responseMask: Uint8Array.from(mask),
    turnScores: [],
    rewards: { outcome, length: 0, tools: 0, turns, tokenLevel },
    ...more,
  } as unknown as Trajectory;
}

describe("creditNodes", () => {
  it("is GRPO where no answer has a reward of its own", () => {
    const group = [0, 1, 1, 0.5].map((reward, i) => makeTrajectory([0, 1, 1, 0, ...Array(i).fill(1)], reward));
    for (const normalizeByStd of [true, false]) {
      const grpo = estimateAdvantages(advantageEstimators.get("grpo"), group, { normalizeByStd });
      const nodes = creditNodes(group, { normalizeByStd });
      for (const [t, value] of nodes.advantages.entries()) expect(value).toBeCloseTo(grpo.advantages[t]!, 6);
    }
  });

  it("credits an answer with its reward and later ones; an episode counts once in the group", () => {
    // Prompt, [1] -> branches [2] worth 1 and [3, 4] worth 0, and another conversation [6] worth 4.
    const branched = makeTrajectory([0, 1, 1, 1, 1, 0, 1], 10, {
      segments: [segment(0, 2, -1), segment(2, 3, 0), segment(3, 5, 0), segment(5, 7, -1)],
      turnScores: [
        { value: 1, tokenIndex: 2 },
        { value: 4, tokenIndex: 6 },
      ],
    });
    const plain = makeTrajectory([0, 1], 0);
    const { advantages } = creditNodes([branched, plain], { normalizeByStd: false });
    // Values 11 11 10 10 14: the episode's mean is 11.2, the group's 5.6.
    expect([...advantages].map((x) => Number(x.toFixed(4)))).toEqual([0, 5.4, 5.4, 4.4, 4.4, 0, 8.4, 0, -5.6]);
  });
});
