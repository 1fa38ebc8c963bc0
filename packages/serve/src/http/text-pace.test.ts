import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TextPace } from "./text-pace.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function makePace(milliseconds: number) {
  const told: string[] = [];
  const pace = new TextPace(milliseconds);
  const add = (text: string, kind = "text") => pace.add(kind, text, (all) => told.push(`${kind}: ${all}`));
  return { told, pace, add };
}

describe("TextPace", () => {
  it("passes the first pieces on at once, and joins later ones until the time is over", () => {
    const { told, add } = makePace(30);
    for (const text of ["a", "b", "c", "d"]) add(text);
    expect(told).toEqual(["text: a", "text: b"]);
    vi.advanceTimersByTime(29);
    add("e");
    expect(told.length).toBe(2);
    vi.advanceTimersByTime(1);
    expect(told.slice(2)).toEqual(["text: cde"]);
    add("f");
    vi.advanceTimersByTime(30);
    expect(told.slice(3)).toEqual(["text: f"]);
  });

  it("keeps pieces of other kinds apart and in order, and passes on the rest at its end", () => {
    const { told, add, pace } = makePace(30);
    for (const text of ["a", "b"]) add(text);
    add("thought", "reasoning");
    for (const text of ["c", "d"]) add(text);
    pace.flush();
    expect(told.slice(2)).toEqual(["reasoning: thought", "text: cd"]);
    pace.flush();
    vi.advanceTimersByTime(100);
    expect(told.length).toBe(4);
  });

  it("without a pace joins nothing", () => {
    const { told, add } = makePace(0);
    for (const text of ["a", "b", "c"]) add(text);
    expect(told).toEqual(["text: a", "text: b", "text: c"]);
  });
});
