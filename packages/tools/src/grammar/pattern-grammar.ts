import { type CodePoints, complement, toCodePoints } from "./code-points.js";
import { anyOf, repeated } from "./grammar-writer.js";
import type { TextForm } from "./text-form.js";

const ANY = complement([]);
const DIGIT: CodePoints = [[0x30, 0x39]];
const WORD = toCodePoints([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
const SPACE = toCodePoints(
  [
    [9, 13],
    [32, 32],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x2028, 0x2029],
  ].concat([
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ]) as unknown as CodePoints,
);
const LINE_ENDS: CodePoints = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const SETS: Record<string, CodePoints> = {
  d: DIGIT,
  D: complement(DIGIT),
  w: WORD,
  W: complement(WORD),
  s: SPACE,
  S: complement(SPACE),
};
const CONTROLS: Record<string, number> = { n: 10, r: 13, t: 9, f: 12, v: 11, "0": 0 };
const DEEPEST = 100;

/** A part of a pattern that no grammar can express. */
class Unsupported extends Error {}

/**
 * The characters of the strings that match a regular expression of JSON Schema; null for patterns that no grammar can
 * express: assertions other than `^` at the beginning and `$` at the end, back references, Unicode properties.
 */
export function patternGrammar(pattern: string, form: TextForm): string | null {
  try {
    return new PatternReader([...pattern], form).read();
  } catch (error) {
    if (error instanceof Unsupported) return null;
    throw error;
  }
}

class PatternReader {
  private at = 0;

  constructor(
    private readonly chars: readonly string[],
    private readonly form: TextForm,
  ) {}

  read(): string {
    const anything = repeated(this.class(ANY), 0);
    const alternatives: string[] = [];
    do {
      const isBegin = this.take("^");
      const body = this.sequence(0);
      const isEnd = this.take("$");
      if (!this.isAtEnd() && this.peek() !== "|") throw new Unsupported();
      alternatives.push([isBegin ? "" : anything, body, isEnd ? "" : anything].filter(Boolean).join(" ") || '""');
    } while (this.take("|"));
    return anyOf(alternatives);
  }

  private peek(): string | undefined {
    return this.chars[this.at];
  }

  private isAtEnd(): boolean {
    return this.at >= this.chars.length;
  }

  private take(text: string): boolean {
    if (
      !this.chars
        .slice(this.at, this.at + text.length)
        .join("")
        .startsWith(text)
    )
      return false;
    this.at += text.length;
    return true;
  }

  private alternatives(depth: number): string {
    if (depth > DEEPEST) throw new Unsupported();
    const alternatives = [this.sequence(depth)];
    while (this.take("|")) alternatives.push(this.sequence(depth));
    return anyOf(alternatives.map((one) => one || '""'));
  }

  private sequence(depth: number): string {
    const parts: string[] = [];
    while (!this.isAtEnd() && !"|)$".includes(this.peek()!)) parts.push(this.quantified(depth));
    return parts.join(" ");
  }

  private quantified(depth: number): string {
    const element = this.element(depth);
    const [least, most] = this.quantifier();
    this.take("?"); // a lazy quantifier matches the same strings
    return repeated(element, least, most);
  }

  private quantifier(): [number, number] {
    if (this.take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.take("?")) return [0, 1];
    const counts = /^\{(\d{1,6})(,(\d{0,6}))?\}/.exec(this.chars.slice(this.at, this.at + 16).join(""));
    if (!counts) return [1, 1];
    this.at += counts[0].length;
    const least = Number(counts[1]);
    return [least, counts[2] === undefined ? least : counts[3] === "" ? Number.POSITIVE_INFINITY : Number(counts[3])];
  }

  private element(depth: number): string {
    if (this.take("(")) {
      if (this.take("?") && !this.take(":")) throw new Unsupported();
      const body = this.alternatives(depth + 1);
      if (!this.take(")")) throw new Unsupported();
      return `(${body})`;
    }
    if (this.take("[")) return this.class(this.characterClass());
    if (this.take(".")) return this.class(complement(LINE_ENDS));
    if (this.take("\\")) return this.class(this.escape());
    const char = this.chars[this.at++]!;
    if ("^*+?{}]".includes(char)) throw new Unsupported();
    return this.class(one(char.codePointAt(0)!));
  }

  private characterClass(): CodePoints {
    const isNegated = this.take("^");
    const ranges: (readonly [number, number])[] = [];
    while (!this.take("]")) {
      if (this.isAtEnd()) throw new Unsupported();
      const first = this.classMember();
      if (
        first.length !== 1 ||
        first[0]![0] !== first[0]![1] ||
        this.peek() !== "-" ||
        this.chars[this.at + 1] === "]"
      ) {
        ranges.push(...first);
        continue;
      }
      this.at++;
      const last = this.classMember();
      if (last.length !== 1 || last[0]![0] !== last[0]![1] || last[0]![0] < first[0]![0]) throw new Unsupported();
      ranges.push([first[0]![0], last[0]![0]]);
    }
    const points = toCodePoints(ranges);
    return isNegated ? complement(points) : points;
  }

  private classMember(): CodePoints {
    if (this.take("\\")) return this.peek() === "b" && this.take("b") ? one(8) : this.escape();
    if (this.isAtEnd()) throw new Unsupported();
    return one(this.chars[this.at++]!.codePointAt(0)!);
  }

  private escape(): CodePoints {
    const char = this.chars[this.at++];
    if (char === undefined) throw new Unsupported();
    if (Object.hasOwn(SETS, char)) return SETS[char]!;
    if (Object.hasOwn(CONTROLS, char) && !/\d/.test(this.peek() ?? "")) return one(CONTROLS[char]!);
    if (char === "x" || char === "u") {
      const rest = this.chars.slice(this.at, this.at + 10).join("");
      const hex = (char === "x" ? /^([0-9a-f]{2})/i : /^(?:([0-9a-f]{4})|\{([0-9a-f]{1,6})\})/i).exec(rest);
      const point = hex && Number.parseInt(hex[1] ?? hex[2]!, 16);
      if (!hex || point! > 0x10ffff || (point! >= 0xd800 && point! <= 0xdfff)) throw new Unsupported();
      this.at += hex[0].length;
      return one(point!);
    }
    if (/[a-zA-Z0-9]/.test(char)) throw new Unsupported();
    return one(char.codePointAt(0)!);
  }

  private class(points: CodePoints): string {
    const expression = points.length === 0 ? null : this.form.oneOf(points);
    if (expression === null) throw new Unsupported();
    return expression;
  }
}

function one(point: number): CodePoints {
  return toCodePoints([[point, point]]);
}
