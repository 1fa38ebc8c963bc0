import { describe, expect, it } from "vitest";
import { isGuided, isTeachersAlone, measureGuidance, shareOfTeacher } from "./guidance.js";

const teacher = { role: "assistant", sampledBy: "teacher" } as const;
const policy = { role: "assistant" } as const;
const user = { role: "user" } as const;

describe("the teacher's share of the turns", () => {
  it("falls by the same amount each step, and stays 0", () => {
    const guidance = { guidedShare: 0.8, guidedSteps: 4 };
    const shares = [1, 2, 3, 4, 5, 6].map((step) => shareOfTeacher(step, guidance));
    [0.8, 0.6, 0.4, 0.2, 0, 0].forEach((share, i) => {
      expect(shares[i]).toBeCloseTo(share, 12);
    });
    expect(shareOfTeacher(1, { guidedShare: 0, guidedSteps: 4 })).toBe(0);
  });

  it("is drawn for each turn of each conversation, by its seed", () => {
    const draw = (share: number) =>
      Array.from({ length: 200 }, (_, seed) => [1, 2, 3].map((number) => isGuided({ seed, number }, share)));
    expect(draw(0.3)).toEqual(draw(0.3));
    expect(draw(0).flat()).not.toContain(true);
    expect(draw(1).flat()).not.toContain(false);
    for (const turn of [0, 1, 2]) {
      const share = draw(0.3).filter((turns) => turns[turn]).length / 200;
      expect(share).toBeGreaterThan(0.2);
      expect(share).toBeLessThan(0.4);
    }
    // Turns of one conversation are drawn apart.
    expect(draw(0.5).some(([first, second]) => first !== second)).toBe(true);
    // A larger share takes the same turns, and more.
    const [few, many] = [draw(0.3).flat(), draw(0.6).flat()];
    expect(few.every((is, i) => !is || many[i])).toBe(true);
  });
});

describe("measureGuidance", () => {
  it("counts the assistant's turns, and the conversations that the teacher held alone", () => {
    const turns = [[teacher, user, policy], [teacher, user, teacher], [policy]];
    expect(measureGuidance(2, { guidedShare: 0.5, guidedSteps: 2 }, turns)).toEqual({
      "distillation/guided/share": 0.25,
      "distillation/guided/turns": 3 / 5,
      "distillation/guided/left_out": 1,
    });
    expect(measureGuidance(2, { guidedShare: 0, guidedSteps: 2 }, turns)).toEqual({});
    expect(measureGuidance(2, null, turns)).toEqual({});
  });

  it("takes no conversation without a turn for the teacher's", () => {
    expect(isTeachersAlone([])).toBe(false);
    expect(isTeachersAlone([user])).toBe(false);
  });
});
