/** An expression of a grammar. */
export type Expression =
  | { kind: "choice"; choices: readonly Expression[] }
  | { kind: "row"; items: readonly Expression[] }
  | { kind: "repeat"; item: Expression; least: number; most: number }
  | { kind: "text"; text: string }
  | { kind: "class"; ranges: readonly (readonly [first: string, last: string])[]; isNegated: boolean }
  | { kind: "rule"; name: string };

/**
 * Reads a grammar in llama.cpp's notation (GBNF), of the kind that `toolCallGrammar` writes: one rule a line, no
 * comments.
 */
export function readGrammar(grammar: string): ReadonlyMap<string, Expression> {
  const lines = grammar.split("\n").filter((rule) => rule !== "");
  return new Map(
    lines.map((line) => {
      const [name, body] = line.split(/ ::= (.*)/s) as [string, string];
      return [name, new ExpressionReader(body).read()];
    }),
  );
}

/** True if a character is in a class. */
export function isInClass(char: string, { ranges, isNegated }: Expression & { kind: "class" }): boolean {
  return ranges.some(([first, last]) => code(first) <= code(char) && code(char) <= code(last)) !== isNegated;
}

/** Reads one rule's body from left to right. */
class ExpressionReader {
  private at = 0;

  constructor(private readonly body: string) {}

  read(): Expression {
    const choices = [this.readRow()];
    while (this.take(/\|/y)) choices.push(this.readRow());
    return { kind: "choice", choices };
  }

  private readRow(): Expression {
    const items: Expression[] = [];
    for (;;) {
      this.take(/ +/y);
      if (this.at === this.body.length || "|)".includes(this.body[this.at]!)) return { kind: "row", items };
      items.push(this.readRepeated());
    }
  }

  private readRepeated(): Expression {
    const item = this.readItem();
    const [sign, from, comma, to] = this.take(/[*+?]|\{(\d+)(,?)(\d*)\}/y) ?? ["{1}", "1", "", ""];
    const signs: Record<string, [number, number]> = { "*": [0, Infinity], "+": [1, Infinity], "?": [0, 1] };
    const count = Number(from);
    const [least, most] = signs[sign!] ?? [count, comma === "" ? count : to === "" ? Infinity : Number(to)];
    return { kind: "repeat", item, least, most };
  }

  private readItem(): Expression {
    if (this.take(/\(/y)) {
      const inside = this.read();
      if (!this.take(/\)/y)) throw this.fail();
      return inside;
    }
    const text = this.take(/"((?:[^"\\]|\\.)*)"/y);
    if (text) return { kind: "text", text: readCharacters(text[1]!).join("") };
    const set = this.take(/\[(\^?)((?:[^\]\\]|\\.)*)\]/y);
    if (set) return { kind: "class", ranges: readRanges(set[2]!), isNegated: set[1] === "^" };
    const name = this.take(/[a-zA-Z0-9-]+/y)?.[0];
    if (name === undefined) throw this.fail();
    return { kind: "rule", name };
  }

  private take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.body);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private fail(): Error {
    return new Error(`cannot read a grammar at ${this.body.slice(this.at)}`);
  }
}

const code = (char: string) => char.codePointAt(0)!;

/** Characters, with escapes resolved. */
function readCharacters(text: string): string[] {
  const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t" };
  return [...text.matchAll(/\\(?:x(..)|u(.{4})|U(.{8})|(.))|([^\\])/gsu)].map(([, x, u, long, other, plain]) => {
    const hex = x ?? u ?? long;
    return hex === undefined ? (plain ?? escapes[other!] ?? other!) : String.fromCodePoint(Number.parseInt(hex, 16));
  });
}

/** First and last characters of a class's ranges. */
function readRanges(text: string): [string, string][] {
  const parts = text.match(/(?:\\x..|\\u.{4}|\\U.{8}|\\.|[^\\])/gsu) ?? [];
  const ranges: [string, string][] = [];
  for (let i = 0; i < parts.length; i++) {
    const first = readCharacters(parts[i]!)[0]!;
    const isRange = parts[i + 1] === "-" && i + 2 < parts.length;
    ranges.push([first, isRange ? readCharacters(parts[i + 2]!)[0]! : first]);
    if (isRange) i += 2;
  }
  return ranges;
}
