import { describe, expect, it } from "vitest";
import type { TurnRecord } from "./trajectory.js";
import { listSampledTurns } from "./trajectory-turns.js";

const turn = (role: TurnRecord["role"], start: number, end: number, state?: string): TurnRecord => ({
  role,
  start,
  end,
  startedAt: 0,
  endedAt: 0,
  ...(state === undefined ? {} : { state }),
});
const segment = (start: number, end: number, parent: number) => ({ start, end, parent });
const timelineOf = (...turns: TurnRecord[]) => ({ loop: [], request: [], turns });

describe("listSampledTurns", () => {
  it("follows the recorded turns along each path, and says the state that each begins in", () => {
    // [prompt, said, heard "hall"] -> [said], and [said, heard "yard", said]; another conversation.
    const segments = [segment(0, 6, -1), segment(6, 8, 0), segment(8, 13, 0), segment(13, 16, -1)];
    const timeline = timelineOf(
      turn("assistant", 2, 4),
      turn("tool", 4, 6, "hall"),
      turn("assistant", 6, 8),
      turn("assistant", 8, 9),
      turn("user", 9, 11, "yard"),
      turn("assistant", 11, 13),
      turn("user", 13, 15),
      turn("assistant", 15, 16),
    );
    expect(listSampledTurns({ responseMask: new Uint8Array(16), segments, timeline })).toEqual([
      { start: 2, end: 4, segment: 0, parent: -1 },
      { start: 6, end: 8, segment: 1, parent: 0, state: "hall" },
      { start: 8, end: 9, segment: 2, parent: 0, state: "hall" },
      { start: 11, end: 13, segment: 2, parent: 2, state: "yard" },
      { start: 15, end: 16, segment: 3, parent: -1 },
    ]);
  });

  it("leaves out turns whose tokens were replaced, and keeps turns of one line in one segment", () => {
    const timeline = timelineOf(turn("assistant", 2, 2), turn("user", 2, 3), turn("assistant", 3, 5));
    expect(listSampledTurns({ responseMask: [0, 0, 0, 1, 1], timeline })).toEqual([
      { start: 3, end: 5, segment: 0, parent: -1 },
    ]);
  });

  it("leaves out turns that a teacher sampled, and the state that these begin in", () => {
    const timeline = timelineOf(
      turn("user", 2, 3, "hall"),
      { ...turn("assistant", 3, 5), sampledBy: "teacher" },
      turn("user", 5, 6),
      turn("assistant", 6, 8),
    );
    expect(listSampledTurns({ responseMask: [0, 0, 0, 0, 0, 0, 1, 1], timeline })).toEqual([
      { start: 6, end: 8, segment: 0, parent: -1 },
    ]);
  });

  it("takes stretches with mask 1 where no turns were recorded, each within its segment", () => {
    const responseMask = [0, 1, 1, 0, 1, 1, 1];
    const segments = [segment(0, 5, -1), segment(5, 7, 0)];
    expect(listSampledTurns({ responseMask, segments, timeline: timelineOf() })).toEqual([
      { start: 1, end: 3, segment: 0, parent: -1 },
      { start: 4, end: 5, segment: 0, parent: 0 },
      { start: 5, end: 7, segment: 1, parent: 1 },
    ]);
    expect(listSampledTurns({ responseMask }).map(({ parent }) => parent)).toEqual([-1, 0]);
  });
});
