import { type CodePoints, complement, contains, toCodePoints, without, writeClass } from "./code-points.js";
import { anyOf, type GrammarWriter, literal, repeated } from "./grammar-writer.js";

/** The form of a string in the sampled text: JSON between quotes, or bare between tags. */
export interface TextForm {
  /** The whole string, from an expression for its characters. */
  wrap(characters: string): string;
  /** One character of the set; null where the form has none of them. */
  oneOf(points: CodePoints): string | null;
  /** Any string of `least` to `most` characters. */
  any(least: number, most: number): string;
}

const CONTROL = toCodePoints([
  [0, 0x1f],
  [0x7f, 0x7f],
]);
const SHORT_ESCAPES: readonly (readonly [number, string])[] = [
  [0x22, '\\"'],
  [0x5c, "\\\\"],
  [0x08, "\\b"],
  [0x0c, "\\f"],
  [0x0a, "\\n"],
  [0x0d, "\\r"],
  [0x09, "\\t"],
];

/** Strings between quotes. A character is one that needs no escape, or an escape of one whole character. */
export function jsonForm(writer: GrammarWriter, escapesTags: boolean): TextForm {
  const tag: CodePoints = escapesTags ? [[0x3c, 0x3c]] : [];
  const plain = complement(toCodePoints([...CONTROL, [0x22, 0x22], [0x5c, 0x5c], ...tag]));
  const escapes = escapesTags ? [...SHORT_ESCAPES, [0x3c, "\\u003c"] as const] : SHORT_ESCAPES;
  const char = () => {
    // No half of a surrogate pair, since two such escapes would be one character.
    const unit = 'u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2})';
    return writer.rule("char", `${writeClass(plain)} | "\\\\" (["\\\\bfnrt/] | "${unit})`);
  };
  const wrap = (characters: string) => `"\\"" ${characters} "\\""`;
  return {
    wrap,
    oneOf: (points) => {
      const free = without(points, complement(plain));
      const escaped = escapes.filter(([point]) => contains(points, point)).map(([, text]) => literal(text));
      const choices = [...(free.length > 0 ? [writeClass(free)] : []), ...escaped];
      return choices.length === 0 ? null : anyOf(choices);
    },
    any: (least, most) => writer.rule("string", wrap(repeated(char(), least, most))),
  };
}

/** Exactly this text, bare; null if a parser would read it differently. */
export function bareText(value: string, close: string): string | null {
  return value.includes(close) || /[\0\r]/.test(value) ? null : literal(value);
}

/**
 * A bare text up to its closing tag.
 * @param close the closing tag, which the text must not contain.
 */
export function bareForm(writer: GrammarWriter, close: string): TextForm {
  // A parser may read "\r\n" as one line break; NUL is useless.
  const never = toCodePoints([
    [0, 0],
    [0x0d, 0x0d],
  ]);
  const first = close.codePointAt(0)!;
  const withoutTags = complement(toCodePoints([...never, [first, first]]));
  const text = () => {
    const chars = [...close];
    // One rule for each part of the closing tag that was just read.
    const names = chars.map((_, i) => writer.open(`text-${i}`));
    for (const [i, name] of names.entries()) {
      // Characters behind which a part of the tag was just read; after all others none was.
      const others = [...new Set(chars)].filter((char) => char !== chars[i] && countRead(chars, i, char) > 0);
      const escaped = [chars[i]!, ...others].map((char) => (/[\w<>]/.test(char) ? char : toEscape(char))).join("");
      const next = [chars[i]!, ...others].flatMap((char) => {
        const read = countRead(chars, i, char);
        return read < chars.length ? [`${literal(char)} ${names[read]}`] : [];
      });
      writer.close(name, [`[^${escaped}\\r\\x00] ${names[0]}`, ...next, '""'].join(" | "));
    }
    return names[0]!;
  };
  let whole: string | undefined;
  return {
    wrap: (characters) => characters,
    oneOf: (points) => {
      const free = without(points, complement(withoutTags));
      return free.length === 0 ? null : writeClass(free);
    },
    any: (least, most) => {
      if (least > 0 || most !== Number.POSITIVE_INFINITY) return repeated(writeClass(withoutTags), least, most);
      whole ??= text();
      return whole;
    },
  };
}

/** Number of characters of a tag that were just read if `char` follows its first `read` ones. */
function countRead(tag: readonly string[], read: number, char: string): number {
  const text = [...tag.slice(0, read), char];
  for (let count = text.length; count > 0; count--) {
    if (text.slice(-count).every((one, i) => one === tag[i])) return count;
  }
  return 0;
}

/** Between two marks that no string contains, without escapes. */
export function markedForm(writer: GrammarWriter, mark: string): TextForm {
  const bare = bareForm(writer, mark);
  const wrap = (characters: string) => `${literal(mark)} ${characters} ${literal(mark)}`;
  return { ...bare, wrap, any: (least, most) => writer.rule("string", wrap(bare.any(least, most))) };
}

function toEscape(char: string): string {
  return `\\u${char.codePointAt(0)!.toString(16).padStart(4, "0")}`;
}
