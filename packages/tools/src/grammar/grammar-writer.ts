import { DataError } from "@cria/core";

/**
 * Most work for one grammar, in characters read, compared or written: about a tenth of a second. Without it, references
 * that share a schema could multiply it without bound.
 */
const MOST_WORK = 1_000_000;

/** Work of a step that looks at a schema or a value, in characters. */
export const STEP = 20;

/**
 * The rules of a grammar in llama.cpp's notation (GBNF) while it is written. Expressions are texts, safe to put in a
 * row.
 */
export class GrammarWriter {
  private readonly rules = new Map<string, string>();
  private readonly names = new Map<string, string>();
  /** Number of rules for each beginning of a name. */
  private readonly hints = new Map<string, number>();
  private work = 0;

  /** @throws DataError where a grammar takes too much work. */
  spend(work: number): void {
    this.work += work;
    if (this.work <= MOST_WORK) return;
    throw new DataError("is too large for a grammar", {
      code: "data/unsupported-schema",
      subject: "JSON Schema",
      expected: `a schema whose grammar takes at most ${MOST_WORK} characters to write, alternatives and references followed`,
      received: "a schema that takes more",
      remedy: "simplify the schema, or sample without a grammar and check afterwards",
    });
  }

  /**
   * A rule with this body; callers with the same body share it.
   * @returns its name.
   */
  rule(hint: string, body: string): string {
    this.spend(body.length);
    const known = this.names.get(body);
    if (known !== undefined) return known;
    const name = this.open(hint);
    this.names.set(body, name);
    this.rules.set(name, body);
    return name;
  }

  /** A name whose body follows later by `close`, so that rules may name themselves. */
  open(hint: string): string {
    const base = hint.replace(/[^a-zA-Z0-9]+/g, "-").slice(0, 40) || "rule";
    let name = base;
    let count = this.hints.get(base) ?? 1;
    while (name === "root" || this.rules.has(name)) name = `${base}-${++count}`;
    this.hints.set(base, count);
    this.rules.set(name, "");
    return name;
  }

  close(name: string, body: string): void {
    this.rules.set(name, body);
  }

  /** The whole grammar. */
  write(root: string): string {
    return `${[["root", root] as const, ...this.rules].map(([name, body]) => `${name} ::= ${body}`).join("\n")}\n`;
  }
}

/** An expression that matches exactly this text. */
export function literal(text: string): string {
  const escaped = text.replace(/["\\\p{Cc}\u2028\u2029]/gu, (char) => {
    if (char === '"' || char === "\\") return `\\${char}`;
    return char === "\n" ? "\\n" : `\\u${char.codePointAt(0)!.toString(16).padStart(4, "0")}`;
  });
  return `"${escaped}"`;
}

/** Any of the expressions. */
export function anyOf(expressions: readonly string[]): string {
  const different = [...new Set(expressions)];
  return different.length === 1 ? different[0]! : `(${different.join(" | ")})`;
}

/** `least` to `most` times; `item` is one element (a name, a group, a class). */
export function repeated(item: string, least: number, most = Number.POSITIVE_INFINITY): string {
  if (most === 0) return '""';
  if (least === 1 && most === 1) return item;
  return `${item}{${least},${most === Number.POSITIVE_INFINITY ? "" : most}}`;
}
