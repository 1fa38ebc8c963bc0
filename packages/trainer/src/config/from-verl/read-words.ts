/** A part of a shell word. */
export type Part =
  | { kind: "text"; text: string; quoted: boolean }
  | { kind: "variable"; name: string; index: string | null; operator: string | null; operand: Part[]; quoted: boolean }
  | { kind: "arithmetic"; text: string; quoted: boolean }
  /** A part that only a shell could evaluate: `$(command)`, `${name%pattern}`. */
  | { kind: "opaque"; text: string; quoted: boolean };

export type Word = Part[];

export type Item =
  | { kind: "word"; word: Word; line: number }
  /** A single value, or the list of `NAME=(...)`. */
  | { kind: "assignment"; name: string; append: boolean; value: Word | null; list: Word[] | null; line: number }
  /** `;`, `&&`, a newline, ... or a parenthesis. */
  | { kind: "separator"; text: string; line: number };

const ASSIGNMENT = /^([A-Za-z_]\w*)(\+?)=/;
const NAME = /^[A-Za-z_]\w*/;

/** Splits a shell script into words and separators, without expanding or running anything. */
export class ShellReader {
  private at = 0;
  private readonly items: Item[] = [];
  /** Positions behind here-documents, by the position of the newline before each. */
  private readonly documents = new Map<number, number>();

  private constructor(private readonly source: string) {}

  static read(script: string): Item[] {
    const reader = new ShellReader(script.replaceAll("\r\n", "\n"));
    reader.readItems();
    return reader.items;
  }

  private get line(): number {
    return this.source.slice(0, this.at).split("\n").length;
  }

  private peek(length = 1): string {
    return this.source.slice(this.at, this.at + length);
  }

  private rest(): string {
    return this.source.slice(this.at);
  }

  private readItems(): void {
    while (this.at < this.source.length) {
      this.skipBlanks();
      const { line } = this;
      const redirection = /^\d*(<<<|<<-?|[<>]+[&|]?|&>+)/.exec(this.rest());
      if (this.at >= this.source.length) return;
      if (/^[<>]\(/.test(this.rest())) {
        this.at++;
        this.readBalanced("(", ")");
      } else if (redirection) this.skipRedirection(redirection[0]);
      else if (/^[\n;&|()]/.test(this.peek())) this.items.push({ kind: "separator", text: this.readOperator(), line });
      else this.items.push(this.readAssignment(line) ?? { kind: "word", word: this.readWord(), line });
    }
  }

  /** Skips spaces, line continuations and comments. */
  private skipBlanks(): void {
    for (;;) {
      const blank =
        /^(?:[ \t]|\\\n)+/.exec(this.rest())?.[0] ?? (this.peek() === "#" ? /^[^\n]*/.exec(this.rest())![0] : "");
      if (blank === "") return;
      this.at += blank.length;
    }
  }

  private readOperator(): string {
    const [text] = /^(?:;;|&&|\|\||[\n;&|()])/.exec(this.rest())!;
    this.at = this.documents.get(this.at) ?? this.at + text.length;
    return text;
  }

  private skipRedirection(operator: string): void {
    this.at += operator.length;
    this.skipBlanks();
    const start = this.at;
    this.readWord();
    if (!/<<-?$/.test(operator)) return;
    // Skips a here-document: the lines after this one, up to the line that consists of its name.
    const name = this.source.slice(start, this.at).replace(/['"\\]/g, "");
    const newline = this.source.indexOf("\n", this.at);
    if (newline < 0) return;
    const lines = this.source.slice(newline + 1).split("\n");
    const last = lines.findIndex((text) => text.trim() === name);
    const skipped = (last < 0 ? lines : lines.slice(0, last + 1)).join("\n");
    this.documents.set(newline, newline + 1 + skipped.length);
  }

  /** Reads an assignment, before the command's first word or after `export` and the like. */
  private readAssignment(line: number): Item | null {
    const match = ASSIGNMENT.exec(this.rest());
    if (!match || !this.mayAssign()) return null;
    this.at += match[0].length;
    const [, name, append] = match as unknown as [string, string, string];
    const assignment = { kind: "assignment", name, append: append !== "", line } as const;
    if (this.peek() !== "(") return { ...assignment, value: this.readWord(), list: null };
    this.at++;
    const list: Word[] = [];
    for (;;) {
      this.skipBlanks();
      if (this.peek() === "\n") this.at++;
      else if (this.peek() === ")" || this.at >= this.source.length) break;
      else {
        const { at } = this;
        list.push(this.readWord());
        if (this.at === at) this.at++;
      }
    }
    this.at++;
    return { ...assignment, value: null, list };
  }

  private mayAssign(): boolean {
    for (let i = this.items.length - 1; i >= 0; i--) {
      const item = this.items[i]!;
      if (item.kind === "separator") return true;
      if (item.kind === "assignment") continue;
      const text = showWord(item.word);
      if (!/^(export|declare|local|readonly|typeset|then|else|do|\{|-\w+)$/.test(text)) return false;
    }
    return true;
  }

  private readWord(): Word {
    const word: Word = [];
    const say = (text: string, quoted: boolean) => {
      const last = word.at(-1);
      if (last?.kind === "text" && last.quoted === quoted) last.text += text;
      else word.push({ kind: "text", text, quoted });
    };
    while (this.at < this.source.length) {
      const next = this.peek();
      if (/[\s;&|()<>]/.test(next)) break;
      if (next === "\\") {
        if (this.peek(2) !== "\\\n") say(this.source[this.at + 1] ?? "", true);
        this.at += 2;
      } else if (next === "'") say(this.readUntil("'"), true);
      else if (this.peek(2) === "$'") {
        this.at++;
        say(this.readUntil("'").replace(/\\n/g, "\n").replace(/\\t/g, "\t").replace(/\\(.)/g, "$1"), true);
      } else if (next === '"') word.push(...this.readQuoted());
      else if (next === "$" || next === "`") word.push(...this.readExpansion(false));
      else {
        say(next, false);
        this.at++;
      }
    }
    return word;
  }

  /** Reads the text up to the next occurrence of this character. */
  private readUntil(mark: string): string {
    const end = this.source.indexOf(mark, this.at + 1);
    const text = this.source.slice(this.at + 1, end < 0 ? undefined : end);
    this.at = end < 0 ? this.source.length : end + 1;
    return text;
  }

  private readQuoted(): Part[] {
    // Starts with an empty part: "" is a word of its own.
    const parts: Part[] = [{ kind: "text", text: "", quoted: true }];
    const say = (text: string) => parts.push({ kind: "text", text, quoted: true });
    this.at++;
    while (this.at < this.source.length && this.peek() !== '"') {
      const next = this.peek();
      if (next === "\\") {
        const escaped = this.source[this.at + 1] ?? "";
        if (escaped !== "\n") say('"$`\\'.includes(escaped) ? escaped : `\\${escaped}`);
        this.at += 2;
      } else if (next === "$" || next === "`") parts.push(...this.readExpansion(true));
      else {
        const [text] = /^[^"\\$`]+/.exec(this.rest())!;
        say(text);
        this.at += text.length;
      }
    }
    this.at++;
    return parts;
  }

  private readExpansion(quoted: boolean): Part[] {
    if (this.peek() === "`") return [{ kind: "opaque", text: `\`${this.readUntil("`")}\``, quoted }];
    if (this.peek(3) === "$((") {
      this.at++;
      const text = this.readBalanced("(", ")");
      return [{ kind: "arithmetic", text: text.slice(2, -2), quoted }];
    }
    if (this.peek(2) === "$(") {
      this.at++;
      return [{ kind: "opaque", text: `$${this.readBalanced("(", ")")}`, quoted }];
    }
    if (this.peek(2) === "${") {
      this.at++;
      return [readParameter(this.readBalanced("{", "}").slice(1, -1), quoted)];
    }
    this.at++;
    const name = NAME.exec(this.rest())?.[0] ?? /^[@*#?$!0-9-]/.exec(this.rest())?.[0];
    if (name === undefined) return [{ kind: "text", text: "$", quoted }];
    this.at += name.length;
    return [{ kind: "variable", name, index: null, operator: null, operand: [], quoted }];
  }

  /** Reads from an opening bracket to the matching closing one, inclusive. Brackets in quotes are ignored. */
  private readBalanced(open: string, close: string): string {
    const start = this.at;
    let depth = 0;
    while (this.at < this.source.length) {
      const next = this.peek();
      if (next === "\\") this.at++;
      else if (next === "'" && open === "(") {
        this.readUntil("'");
        continue;
      } else if (next === open) depth++;
      else if (next === close && --depth === 0) break;
      this.at++;
    }
    this.at++;
    return this.source.slice(start, this.at);
  }

  /** Reads the parts of the operand in `${name:-...}`. */
  static readOperand(text: string, quoted: boolean): Part[] {
    const reader = new ShellReader(text);
    if (quoted) return reader.readAsQuoted();
    const parts: Part[] = [];
    while (reader.at < text.length) {
      const { at } = reader;
      parts.push(...reader.readWord());
      // Characters that would end a word elsewhere are text here.
      if (reader.at === at) parts.push({ kind: "text", text: text[reader.at++]!, quoted: false });
    }
    return parts;
  }

  private readAsQuoted(): Part[] {
    const inner = new ShellReader(`"${this.source.replace(/(^|[^\\])"/g, '$1\\"')}"`);
    return inner.readQuoted();
  }
}

/** Reads the inside of `${...}`. */
function readParameter(text: string, quoted: boolean): Part {
  const match = /^([A-Za-z_]\w*|[@*0-9])(?:\[([^\]]*)\])?(?:(:?[-=+?])([\s\S]*))?$/.exec(text);
  if (!match) return { kind: "opaque", text: `\${${text}}`, quoted };
  const [, name, index, operator, operand] = match as unknown as [string, string, string?, string?, string?];
  return {
    kind: "variable",
    name,
    index: index ?? null,
    operator: operator ?? null,
    operand: operand === undefined ? [] : ShellReader.readOperand(operand, quoted),
    quoted,
  };
}

/** Approximate source text of a word, for messages and keywords. */
export function showWord(word: Word): string {
  return word
    .map((part) => {
      if (part.kind === "variable") return `$${part.name}`;
      return part.kind === "arithmetic" ? `$((${part.text}))` : part.text;
    })
    .join("");
}
