import { skipSpace } from "./json-span.js";
import type { ParsedToolCall } from "./tool-parser.js";

/** A call, and the index behind its arguments, or what is wrong with it. */
export type GemmaCall = { ok: true; call: ParsedToolCall; end: number } | { ok: false; problem: string; name: string };

/** Arguments nested deeper than this are refused. */
const MAX_DEPTH = 100;

const HEAD = /\s{0,20}call:([^\s{}<]{1,200})\s{0,20}(?=\{)/y;
const KEY = /[^\s{}[\]:,<>"\\]{1,200}/y;
const NUMBER = /[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,10})?/y;
const WORD = /[A-Za-z]{1,10}/y;
const words = new Map<string, unknown>(
  Object.entries({ true: true, True: true, false: false, False: false, null: null, None: null }),
);

class Problem extends Error {}

/** True if a property's name is written without marks; others are written like strings. */
export function isBareKey(key: string): boolean {
  KEY.lastIndex = 0;
  return KEY.exec(key)?.[0] === key;
}

/**
 * Reads `call:name{key:value,...}` in Gemma's notation: strings stand between two marks and may contain anything
 * else; keys need none. Templates print null as nothing, or as Python's word.
 *
 * The first character that no value allows there ends the search. Of two searches that both pass a point, one is
 * inside a string there and the other is not, so every character is read at most twice, however many searches start.
 */
export function readGemmaCall(text: string, start: number, mark: string): GemmaCall {
  HEAD.lastIndex = start;
  const name = HEAD.exec(text)?.[1];
  if (name === undefined) return { ok: false, problem: "no name and arguments", name: "" };
  const reader = new Reader(text, HEAD.lastIndex, mark);
  try {
    const args = reader.readObject(0);
    return { ok: true, call: { name, arguments: args }, end: reader.at };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { ok: false, problem: error.message, name };
  }
}

class Reader {
  constructor(
    private readonly text: string,
    public at: number,
    private readonly mark: string,
  ) {}

  readObject(depth: number): Record<string, unknown> {
    this.take("{");
    const entries = this.readRow("}", () => {
      const key = this.readString() ?? this.match(KEY);
      if (key === null) throw new Problem("a key is missing");
      if (!this.take(":")) throw new Problem(": is missing behind a key");
      return [key, this.readValue(depth + 1)] as const;
    });
    return Object.fromEntries(entries);
  }

  private readValue(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new Problem("nested too deeply");
    const text = this.readString();
    if (text !== null) return text;
    this.skipSpace();
    const char = this.text[this.at];
    if (char === "{") return this.readObject(depth);
    if (this.take("[")) return this.readRow("]", () => this.readValue(depth + 1));
    if (char === "," || char === "]" || char === "}") return null;
    const number = this.match(NUMBER);
    if (number !== null && Number.isFinite(Number(number))) return Number(number);
    const word = number === null ? this.match(WORD) : null;
    if (word === null || !words.has(word)) throw new Problem(`no value: texts stand between ${this.mark}`);
    return words.get(word);
  }

  /** Items with commas between them, up to the closing bracket. */
  private readRow<T>(close: string, read: () => T): T[] {
    const items: T[] = [];
    while (!this.take(close)) {
      if (items.length > 0 && !this.take(",")) throw new Problem(`${close} is missing`);
      items.push(read());
    }
    return items;
  }

  private readString(): string | null {
    this.skipSpace();
    if (!this.text.startsWith(this.mark, this.at)) return null;
    const start = this.at + this.mark.length;
    const end = this.text.indexOf(this.mark, start);
    if (end < 0) throw new Problem(`a text does not end: ${this.mark} is missing`);
    this.at = end + this.mark.length;
    return this.text.slice(start, end);
  }

  private take(char: string): boolean {
    this.skipSpace();
    if (this.text[this.at] !== char) return false;
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
    this.at = skipSpace(this.text, this.at);
  }
}
