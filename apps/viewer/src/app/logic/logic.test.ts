import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findDifferences } from "./config-differences.js";
import { diffWords } from "./diff-words.js";
import { smooth } from "./ema.js";
import { formatCount, formatNumber, formatPercent, formatSeconds } from "./format.js";
import { showControls, splitControls } from "./visible-text.js";

fc.configureGlobal({ seed: Number(process.env["CRIA_SEED"] ?? 1) });

describe("smoothing", () => {
  it("keeps a constant, keeps gaps, and follows new values", () => {
    expect(smooth([2, null, 2, 2], 0.9)).toEqual([2, null, 2, 2]);
    expect(smooth([0, 1], 0.5)).toEqual([0, 2 / 3]);
    expect(smooth([1, 5, 3], 0)).toEqual([1, 5, 3]);
  });
});

describe("differences of texts", () => {
  it("are the removed and the added text, word by word", () => {
    expect(diffWords("the cat sat", "the big cat sits")).toEqual([
      { kind: "same", text: "the" },
      { kind: "added", text: " big" },
      { kind: "same", text: " cat" },
      { kind: "removed", text: " sat" },
      { kind: "added", text: " sits" },
    ]);
  });

  it("give both texts back, for any texts", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(fc.constantFrom("a", "b", " ", "\n", "🎉")).map((l) => l.join("")),
    );
    fc.assert(
      fc.property(text, text, (before, after) => {
        const parts = diffWords(before, after);
        const join = (kind: string) => parts.flatMap((part) => (part.kind === kind ? [] : part.text)).join("");
        expect(join("added")).toBe(before);
        expect(join("removed")).toBe(after);
      }),
    );
  });

  it("of long texts take little time", () => {
    const parts = diffWords("a ".repeat(20_000), "b ".repeat(20_000));
    expect(parts.map(({ kind }) => kind)).toEqual(["removed", "added", "same"]);
  });
});

describe("text of others", () => {
  it("shows invisible characters", () => {
    expect(showControls("a\u001b[2J\u0000\u202Eb\u007f\nc\td")).toBe("a␛[2J␀⟨202E⟩b␡\nc\td");
    expect(splitControls("a\u0007\u0008b")).toEqual([
      { text: "a", control: false },
      { text: "␇␈", control: true },
      { text: "b", control: false },
    ]);
  });

  it("never keeps a control character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(showControls(text)).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}]/u);
      }),
    );
  });
});

describe("configs", () => {
  it("differ in keys, of which one may lack some", () => {
    const a = { x: { y: 1, z: [1] }, same: "s" };
    const b = { x: { y: 2, z: [1] }, same: "s", more: null };
    expect(findDifferences([a, b])).toEqual([
      { key: "more", values: [null, "null"] },
      { key: "x.y", values: ["1", "2"] },
    ]);
    // A section that one lacks is one difference, not one for each of its keys.
    expect(findDifferences([a, null])).toEqual([
      { key: "same", values: ['"s"', null] },
      { key: "x", values: ["2 keys", null] },
    ]);
    expect(findDifferences([{ x: {} }, { x: 3 }])).toEqual([{ key: "x", values: ["0 keys", "3"] }]);
  });
});

it("numbers are short", () => {
  expect([0, -0.12345678, 1234567, 0.00001234, null, 12.5].map(formatNumber)).toEqual([
    "0",
    "-0.1235",
    "1,234,567",
    "1.23e-5",
    "–",
    "12.5",
  ]);
  expect([999, 1500, 2_345_678].map(formatCount)).toEqual(["999", "1.5k", "2.35M"]);
  expect([0, 0.005, 0.5, null].map(formatPercent)).toEqual(["0%", "0.5%", "50%", "–"]);
  expect([0, 0.0005, 0.25, 42, 200, 7500, 200_000].map(formatSeconds)).toEqual([
    "0 s",
    "500 µs",
    "250 ms",
    "42 s",
    "3 min 20 s",
    "2 h 5 min",
    "2 d 7 h",
  ]);
});
