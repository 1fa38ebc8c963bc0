/** Characters to draw from a class, as far as it has them. */
const CHARACTERS = [..."abcXYZ_019 \n\t<>{}[]()|/\\\"'`.,:;-+é｜☃"];
/** Repetitions drawn above the fewest, at most. */
const MOST_MORE = 3;

type Draw = () => string;

/**
 * Draws a text from a grammar in llama.cpp's notation (GBNF), of the kind that `toolCallGrammar` writes: one rule a
 * line, no comments.
 */
export function sampleGrammar(grammar: string, random: () => number): string {
  const rules = new Map<string, Draw>();
  for (const line of grammar.split("\n").filter((rule) => rule !== "")) {
    const [name, body] = line.split(/ ::= (.*)/s) as [string, string];
    rules.set(name, new Expression(body, rules, random).read());
  }
  return rules.get("root")!();
}

/** Reads one rule's body from left to right. */
class Expression {
  private at = 0;

  constructor(
    private readonly body: string,
    private readonly rules: ReadonlyMap<string, Draw>,
    private readonly random: () => number,
  ) {}

  read(): Draw {
    const choices = [this.readSequence()];
    while (this.take(/\|/y)) choices.push(this.readSequence());
    return () => this.pick(choices)();
  }

  private readSequence(): Draw {
    const items: Draw[] = [];
    for (;;) {
      this.take(/ +/y);
      if (this.at === this.body.length || "|)".includes(this.body[this.at]!)) break;
      items.push(this.readRepeated());
    }
    return () => items.map((draw) => draw()).join("");
  }

  private readRepeated(): Draw {
    const item = this.readItem();
    const [sign, from, comma, to] = this.take(/[*+?]|\{(\d+)(,?)(\d*)\}/y) ?? ["{1}", "1", "", ""];
    const signs: Record<string, [number, number]> = { "*": [0, MOST_MORE], "+": [1, MOST_MORE], "?": [0, 1] };
    const least = Number(from);
    const most = comma === "" ? least : to === "" ? Number.POSITIVE_INFINITY : Number(to);
    const [fewest, more] = signs[sign!] ?? [least, Math.min(most - least, MOST_MORE)];
    return () => Array.from({ length: fewest + Math.floor(this.random() * (more + 1)) }, item).join("");
  }

  private readItem(): Draw {
    if (this.take(/\(/y)) {
      const draw = this.read();
      if (!this.take(/\)/y)) throw this.fail();
      return draw;
    }
    const text = this.take(/"((?:[^"\\]|\\.)*)"/y);
    if (text) return () => readCharacters(text[1]!).join("");
    const set = this.take(/\[(\^?)((?:[^\]\\]|\\.)*)\]/y);
    if (set) return this.readClass(set[1] === "^", readClassParts(set[2]!));
    const name = this.take(/[a-zA-Z0-9-]+/y)?.[0];
    if (name === undefined) throw this.fail();
    return () => this.rules.get(name)!();
  }

  private readClass(isNegated: boolean, ranges: readonly (readonly [string, string])[]): Draw {
    const isIn = (char: string) =>
      ranges.some(([first, last]) => code(first) <= code(char) && code(char) <= code(last));
    const choices = CHARACTERS.filter((char) => isIn(char) !== isNegated);
    const all = choices.length > 0 ? choices : [ranges[0]![0]];
    return () => this.pick(all);
  }

  private take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.body);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.random() * choices.length)]!;
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
function readClassParts(text: string): [string, string][] {
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
