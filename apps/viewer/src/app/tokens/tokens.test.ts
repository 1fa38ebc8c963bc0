import type { DumpLine } from "@cria/records";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutCells } from "./cells.js";
import { type Coloring, listColorings, readClip } from "./colorings.js";
import { layOut } from "./layout.js";

fc.configureGlobal({ seed: Number(process.env["CRIA_SEED"] ?? 1) });

const line = {
  token_ids: [5, 6, 7, 8],
  response_mask: [0, 1, 1, 1],
  token_level_rewards: [0, 0, 0, 1],
  rollout_logprobs: [0, -0.1, -1, -2],
  old_logprobs: [0, -0.12, -0.5, -2],
  ref_logprobs: null,
  advantages: [0, 0.5, 0.5, -0.5],
  advantage: 0.2,
  reward: 1,
  spans: [
    { start: 0, mask: 0, text: "ab", ends: [2] },
    { start: 1, mask: 1, text: "c🎉", ends: [1, 1, 3] },
  ],
} as Partial<DumpLine> as DumpLine;
const clip = { low: 0.8, high: 1.2 };
const find = (colorings: readonly Coloring[], id: Coloring["id"]) => colorings.find((entry) => entry.id === id)!;

describe("cells", () => {
  it("are tokens; one inside an unfinished character has no text of its own", () => {
    const { cells, exact } = cutCells(line);
    expect(exact).toBe(true);
    expect(cells.map(({ token, text, sampled }) => [token, text, sampled])).toEqual([
      [0, "ab", false],
      [1, "c", true],
      [2, "", true],
      [3, "🎉", true],
    ]);
  });

  it("of an image are one, which names it", () => {
    const image = { hash: "ab", width: 3, height: 4, mime_type: "image/png" as const, start: 1, length: 3 };
    const spans = [line.spans[0]!, { start: 1, mask: 0 as const, text: "<start><end>", image: 0 }];
    const { cells, exact } = cutCells({ ...line, token_ids: [5, 6, -1, 7], images: [image], spans });
    expect(exact).toBe(true);
    expect(cells[1]).toEqual({ token: 1, count: 3, text: "image 3 tokens", sampled: false, image });
  });

  it("are spans if the dump lacks the ends of tokens", () => {
    const old = { ...line, spans: line.spans.map(({ ends: _, ...span }) => span) };
    const { cells, exact } = cutCells(old);
    expect(exact).toBe(false);
    expect(cells.map(({ token, count, text }) => [token, count, text])).toEqual([
      [0, 1, "ab"],
      [1, 3, "c🎉"],
    ]);
  });
});

describe("colours", () => {
  it("of a teacher's logprobs exist if the run had a teacher", () => {
    expect(find(listColorings({ line, clip, now: null }), "teacher")).toBeUndefined();
    const taught = { ...line, teacher_logprobs: [0, -0.12, -3, -0.5] };
    const advice = find(listColorings({ line: taught, clip, now: null }), "teacher");
    expect(advice.values).toEqual([null, 0, -2.5, 1.5]);
    expect([1, 2, 3].map((t) => advice.look(advice.values![t]!, t).split("-")[0])).toEqual(["good", "bad", "good"]);
    expect(advice.explain(2)).toContain("-3");
  });

  it("explain a token's number by the numbers that it comes from", () => {
    const colorings = listColorings({ line, clip, now: null });
    expect(find(colorings, "ratio").explain(1)).toBe(
      "ratio = exp(old − rollout) = exp(-0.12 − -0.1) = 0.9802, inside [0.8, 1.2]",
    );
    expect(find(colorings, "ratio").explain(2)).toMatch(/= 1\.649, outside \[0\.8, 1\.2\]$/);
    expect(find(colorings, "difference").explain(1)).toBe("old − rollout = -0.12 − -0.1 = -0.02");
    expect(find(colorings, "rollout").explain(2)).toBe("p = exp(rollout) = exp(-1) = 36.79%");
    expect(find(colorings, "advantage").explain(3)).toMatch(/pushes this token's probability down/);
  });

  it("take the ratio to the newest adapter once it is known", () => {
    const colorings = listColorings({ line, clip, now: [0, -0.2, -0.5, -1] });
    expect(find(colorings, "ratio").explain(1)).toBe(
      "ratio = exp(now − old) = exp(-0.2 − -0.12) = 0.9231, inside [0.8, 1.2]",
    );
  });

  it("have no values for tokens that were not sampled, and explain missing values", () => {
    const colorings = listColorings({ line, clip, now: null });
    expect(find(colorings, "old").values).toEqual([null, -0.12, -0.5, -2]);
    expect(find(colorings, "ref")).toMatchObject({ values: null, about: "This run did not compute it." });
    expect(find(colorings, "entropy")).toMatchObject({ values: null, about: /rollout_data_detail: full/ });
    const older = listColorings({ line: { ...line, rollout_logprobs: [], advantages: undefined }, clip, now: null });
    expect(find(older, "rollout").values).toBeNull();
    expect(find(older, "advantage").values).toEqual([null, 0.2, 0.2, 0.2]);
  });

  it("mark clipped tokens, and grow with the value", () => {
    const { look } = find(listColorings({ line, clip, now: null }), "ratio");
    expect([look(1, 0), look(1.1, 0), look(1.3, 0), look(0.5, 0)]).toEqual([
      "heat-0",
      "heat-5",
      "heat-8 clipped",
      "cool-8 clipped",
    ]);
  });

  it("take the clip region from the config", () => {
    expect(
      readClip({ actor_rollout_ref: { actor: { clip_ratio: 0.1, clip_ratio_high: 0.3, clip_ratio_low: null } } }),
    ).toEqual({
      low: 0.9,
      high: 1.3,
    });
    expect(readClip(null)).toEqual({ low: 0.8, high: 1.2 });
  });
});

describe("lines of tokens", () => {
  const cells = (texts: readonly string[]) => texts.map((text, token) => ({ token, count: 1, text, sampled: true }));
  const lines = (texts: readonly string[], columns: number) =>
    layOut(cells(texts), columns).map((row) => row.map(({ text }) => text));

  it("end at newlines and at the full width; a longer token takes several", () => {
    expect(lines(["ab", "c\n", "d"], 10)).toEqual([["ab", "c⏎"], ["d"]]);
    expect(lines(["abc", "def", "g"], 5)).toEqual([["abc"], ["def", "g"]]);
    expect(lines(["abcdefgh"], 3)).toEqual([["abc"], ["def"], ["gh"]]);
    expect(lines(["", "\u001b"], 9)).toEqual([["◌", "␛"]]);
  });

  it("hold every token, in order, and are never too wide", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 30 }),
      fc.constantFrom("\n", "\n\n", "", "漢字", "🎉"),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 20 }), fc.integer({ min: 2, max: 40 }), (texts, columns) => {
        const rows = layOut(cells(texts), columns);
        const seen = rows.flatMap((row) => row.map(({ cell }) => cell));
        expect([...new Set(seen)]).toEqual(texts.map((_, i) => i));
        expect(seen).toEqual([...seen].sort((a, b) => a - b));
        for (const row of rows)
          expect(row.map((piece) => [...piece.text].length).reduce((a, b) => a + b)).toBeLessThanOrEqual(columns + 1);
      }),
    );
  });
});
