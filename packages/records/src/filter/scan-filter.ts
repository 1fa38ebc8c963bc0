/** A token of a filter, and its position: `[start, end)` in characters. */
export interface FilterToken {
  kind: "number" | "string" | "name" | "operator" | "end";
  /** Source text. */
  text: string;
  /** Value of a number or string literal. */
  value?: number | string;
  start: number;
  end: number;
}

/** A mistake in a filter, with its position. */
export class FilterMistake extends Error {
  constructor(
    readonly expected: string,
    readonly start: number,
    readonly end: number,
  ) {
    super(`expected ${expected}`);
  }
}

const patterns: [FilterToken["kind"], RegExp][] = [
  ["number", /-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y],
  // Names chosen by judges and tools may contain dashes and slashes: `parts.is-valid`, `metrics.tool/search/hits`.
  ["name", /[\p{L}_][\p{L}\p{N}_]*(?:[./-][\p{L}\p{N}_]+)*/uy],
  ["operator", /&&|\|\||==|!=|<=|>=|!~|[<>=~!()]/y],
];
const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r" };

/** Splits a filter into tokens; the last one marks its end. @throws FilterMistake for invalid text. */
export function scanFilter(source: string): FilterToken[] {
  const tokens: FilterToken[] = [];
  let at = 0;
  for (;;) {
    while (at < source.length && /\s/.test(source[at]!)) at++;
    if (at >= source.length) {
      tokens.push({ kind: "end", text: "", start: at, end: at });
      return tokens;
    }
    const token = scanString(source, at) ?? scanPattern(source, at);
    tokens.push(token);
    at = token.end;
  }
}

function scanPattern(source: string, start: number): FilterToken {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = start;
    const text = pattern.exec(source)?.[0];
    if (text === undefined) continue;
    const token = { kind, text, start, end: start + text.length };
    return kind === "number" ? { ...token, value: Number(text) } : token;
  }
  const char = String.fromCodePoint(source.codePointAt(start)!);
  const remedies: Record<string, string> = { "&": "&&", "|": "||", "“": 'plain quotes, "', "”": 'plain quotes, "' };
  throw new FilterMistake(
    remedies[char] ?? "a field, a number, a text in quotes, or one of && || ! ( ) < <= > >= == != ~ !~",
    start,
    start + char.length,
  );
}

function scanString(source: string, start: number): FilterToken | null {
  const quote = source[start]!;
  if (quote !== '"' && quote !== "'") return null;
  let value = "";
  for (let at = start + 1; at < source.length; at++) {
    const char = source[at]!;
    if (char === quote) return { kind: "string", text: source.slice(start, at + 1), value, start, end: at + 1 };
    if (char !== "\\") value += char;
    else if (++at < source.length) value += escapes[source[at]!] ?? source[at]!;
  }
  throw new FilterMistake(`the quote ${quote} that ends the text`, start, source.length);
}
