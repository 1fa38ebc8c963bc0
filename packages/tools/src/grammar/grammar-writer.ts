/** The rules of a grammar in llama.cpp's notation (GBNF) while it is written. Expressions are texts, safe to put in a row. */
export class GrammarWriter {
  private readonly rules = new Map<string, string>();
  private readonly names = new Map<string, string>();

  /** A rule with this body, shared by all who ask for the same. @returns its name. */
  rule(hint: string, body: string): string {
    const known = this.names.get(body);
    if (known !== undefined) return known;
    const name = this.open(hint);
    this.names.set(body, name);
    this.rules.set(name, body);
    return name;
  }

  /** A name whose body comes later by `close`: rules may name themselves. */
  open(hint: string): string {
    const base = hint.replace(/[^a-zA-Z0-9]+/g, "-").slice(0, 40) || "rule";
    let name = base;
    for (let i = 2; name === "root" || this.rules.has(name); i++) name = `${base}-${i}`;
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
