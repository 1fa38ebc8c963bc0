import type { ParsedToolCall } from "./tool-parser.js";

/** Calls as Python writes them, and the index behind them, or what is wrong and where. */
export type PythonCalls =
  | { ok: true; calls: ParsedToolCall[]; end: number }
  | { ok: false; problem: string; at: number };

/** Arguments nested deeper than this are refused. */
const MAX_DEPTH = 100;

/** Sources of patterns: the name of a tool, and that of an argument. */
export const pythonNames = { tool: "[^\\W\\d][\\w.-]{0,199}", argument: "[^\\s=()[\\]{},:'\"<>]{1,200}" };
const NAME = new RegExp(pythonNames.tool, "y");
const KEY = new RegExp(pythonNames.argument, "y");
const WORD = /[A-Za-z]{1,10}/y;
const NUMBER = /[+-]?(?:\d[\d_]{0,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,10})?/y;
const SPACE = /\s*/y;
const words = new Map<string, unknown>(
  Object.entries({ true: true, True: true, false: false, False: false, null: null, None: null }),
);

class Problem extends Error {}

/**
 * Reads a list of calls, `[f(a=1), g(b="x")]`, or one call without the brackets. Values are literals of Python or
 * JSON; strings may span lines.
 *
 * The first character that no literal allows there ends the search. Searches that pass the same point are in
 * different states there (outside of strings, inside one with single or with double quotes), so every character is
 * read at most three times, however many searches start.
 */
export function readPythonCalls(text: string, start: number): PythonCalls {
  const reader = new Reader(text, start);
  try {
    const calls = reader.readCalls();
    return { ok: true, calls, end: reader.at };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { ok: false, problem: error.message, at: reader.at };
  }
}

/** A literal of Python or of JSON, and nothing behind it; undefined: it is none. */
export function readPythonLiteral(text: string): unknown {
  const reader = new Reader(text, 0);
  try {
    const value = reader.readValue(0);
    return reader.isAtEnd ? value : undefined;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return undefined;
  }
}

class Reader {
  constructor(
    private readonly text: string,
    public at: number,
  ) {}

  readCalls(): ParsedToolCall[] {
    if (!this.take("[")) return [this.readCall()];
    return this.readRow("]", () => this.readCall());
  }

  private readCall(): ParsedToolCall {
    const name = this.match(NAME);
    if (name === null) throw new Problem("no name");
    if (!this.take("(")) throw new Problem(`( is missing behind ${name}`);
    const args = this.readRow(")", () => {
      const key = this.match(KEY);
      if (key === null || !this.take("=")) throw new Problem("arguments are written as name=value");
      return [key, this.readValue(0)] as const;
    });
    return { name, arguments: Object.fromEntries(args) };
  }

  get isAtEnd(): boolean {
    return this.peek() === undefined;
  }

  readValue(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new Problem("nested too deeply");
    const char = this.peek();
    if (char === '"' || char === "'") return this.readStrings();
    if (this.take("[")) return this.readRow("]", () => this.readValue(depth + 1));
    if (this.take("(")) return this.readRow(")", () => this.readValue(depth + 1));
    if (this.take("{")) {
      const entries = this.readRow("}", () => {
        const quote = this.peek();
        if (quote !== '"' && quote !== "'") throw new Problem("keys are strings");
        const key = this.readStrings();
        if (!this.take(":")) throw new Problem(": is missing behind a key");
        return [key, this.readValue(depth + 1)] as const;
      });
      return Object.fromEntries(entries);
    }
    const number = this.match(NUMBER);
    if (number !== null) {
      const value = Number(number.replaceAll("_", ""));
      if (Number.isFinite(value)) return value;
      throw new Problem("a number is too large");
    }
    const word = this.match(WORD);
    if (word === null || !words.has(word)) throw new Problem("no value");
    return words.get(word);
  }

  /** Items separated by commas up to the closing bracket; a trailing comma is allowed. */
  private readRow<T>(close: string, read: () => T): T[] {
    const items: T[] = [];
    while (!this.take(close)) {
      if (items.length > 0 && !this.take(",")) throw new Problem(`${close} is missing`);
      if (items.length > 0 && this.take(close)) break;
      items.push(read());
    }
    return items;
  }

  /** Adjacent strings are concatenated. */
  private readStrings(): string {
    let whole = "";
    for (let quote = this.peek(); quote === '"' || quote === "'"; quote = this.peek()) whole += this.readString(quote);
    return whole;
  }

  private readString(quote: string): string {
    const start = this.at + 1;
    let end = start;
    let isPlain = true;
    for (; end < this.text.length; end++) {
      if (this.text[end] === quote && !this.isApostrophe(end)) break;
      if (this.text[end] !== "\\") continue;
      isPlain = false;
      end++;
    }
    this.at = Math.min(end + 1, this.text.length);
    if (end >= this.text.length) throw new Problem("a string does not end");
    const body = this.text.slice(start, end);
    return isPlain ? body : unescapeText(body);
  }

  /** True for a quote inside a word, which does not end a string: the template of LFM2.5 does not escape it. */
  private isApostrophe(at: number): boolean {
    return this.text[at] === "'" && /^\w'\w$/.test(this.text.slice(at - 1, at + 2));
  }

  private peek(): string | undefined {
    this.skipSpace();
    return this.text[this.at];
  }

  private take(char: string): boolean {
    if (this.peek() !== char) return false;
    this.at++;
    return true;
  }

  private match(pattern: RegExp): string | null {
    this.skipSpace();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  private skipSpace(): void {
    SPACE.lastIndex = this.at;
    SPACE.exec(this.text);
    this.at = SPACE.lastIndex;
  }
}

const escapes: Record<string, string> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  "\n": "",
  "\\": "\\",
  "/": "/",
  "'": "'",
  '"': '"',
};

/** Decodes escapes of Python and of JSON. Unknown escapes stay as they are, as in Python. */
function unescapeText(body: string): string {
  return body.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|([\s\S]))/g,
    (all, x, u, long, char) => {
      const code = x ?? u ?? long;
      if (code === undefined) return escapes[char as string] ?? all;
      return String.fromCodePoint(Number.parseInt(code, 16));
    },
  );
}
