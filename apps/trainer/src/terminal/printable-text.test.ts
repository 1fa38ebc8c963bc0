import { describe, expect, it } from "vitest";
import { makePrintable, makePrintableLine } from "./printable-text.js";

describe("text for a terminal", () => {
  it("stays as people write it", () => {
    const text = "Größe: 12,5 €\n\tnaïve — 日本 👩‍👩‍👧 עברית \\x1b";
    expect(makePrintable(text)).toBe(text);
  });

  it.each([
    ["\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"],
    ["\x1b]0;title\x07", "\\x1b]0;title\\x07"],
    // The same sequences with one character of C1 at their beginning.
    ["\x9b2J\x9d52;c;aGk=\x9c", "\\x9b2J\\x9d52;c;aGk=\\x9c"],
    ["sure\rno  ", "sure\\x0dno  "],
    ["a\b\0\x7f\u0085", "a\\x08\\x00\\x7f\\x85"],
    ["\u202egpj.exe\u2066\u200f\u2028", "\\u202egpj.exe\\u2066\\u200f\\u2028"],
    ["\ud800 \udc00", "\\ud800 \\udc00"],
  ])("has control characters written out: %j", (text, printed) => {
    expect(makePrintable(text)).toBe(printed);
  });

  it("stays on one line if asked", () => {
    expect(makePrintableLine("a\n\tb\r\u2028c")).toBe("a\\n\\tb\\x0d\\u2028c");
  });

  it("is the same in pieces as in one", () => {
    const text = "a\x1b[2Jb\r\n\x9bc\u202ed";
    expect([...text].map(makePrintable).join("")).toBe(makePrintable(text));
  });
});
