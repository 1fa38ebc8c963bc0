import { ConfigError, findNearest } from "@cria/core";
import type { DumpLine } from "../dump/dump-line.js";
import { type FilterType, type FilterValue, filterFamilies, filterFields } from "./filter-fields.js";
import { FilterMistake, type FilterToken, scanFilter } from "./scan-filter.js";

/** Whether a conversation is wanted. */
export type Filter = (line: DumpLine) => boolean;

/** A value of each conversation: a field, or the same for all. */
interface Operand {
  type: FilterType | "null";
  read: (line: DumpLine) => FilterValue;
  start: number;
  end: number;
  /** As written. */
  text: string;
}

const LONGEST = 10_000;
/** Of parentheses and negations inside each other. */
const DEEPEST = 200;

/**
 * A filter of conversations from its text, such as `reward<1 && (tool_errors>0 || text ~ "error")`.
 *
 * - `&&`, `||`, `!`, parentheses; `&&` binds tighter than `||`.
 * - `<`, `<=`, `>`, `>=` compare numbers, `==` (or `=`) and `!=` anything, `null` too. A value that a conversation lacks is
 *   null: less and greater are then false.
 * - `~` and `!~`: whether a text contains another, upper and lower case alike.
 * - Fields: `filterFields`, and `parts.<name>`, `extra.<name>`, `metrics.<name>`. Texts stand in `"` or `'`, with `\` before
 *   quotes inside.
 *
 * @param subject what holds the filter, for the error: `--filter`.
 * @throws ConfigError that points at the place of the mistake, and names the nearest field.
 */
export function parseFilter(source: string, subject = "filter"): Filter {
  try {
    if (source.length > LONGEST) throw new FilterMistake(`at most ${LONGEST} characters`, 0, 1);
    return new FilterParser(source, scanFilter(source)).parse();
  } catch (mistake) {
    if (!(mistake instanceof FilterMistake)) throw mistake;
    throw new ConfigError("is not a filter", {
      code: "config/bad-filter",
      subject,
      expected: hideControls(mistake.expected),
      received: pointAt(source, mistake),
      remedy: `cria show --help lists the fields and operators`,
    });
  }
}

/** Other languages' words for operators. */
const operatorWords = new Map([
  ["and", "&&"],
  ["or", "||"],
  ["not", "!"],
]);

/** Errors quote the source, and a terminal would obey control characters in it. */
function hideControls(text: string): string {
  return text.replace(/\p{C}/gu, " ");
}

/** The line of the source with marks under the mistake. The error prints "  received: " before it. */
function pointAt(source: string, { start, end }: FilterMistake): string {
  const margin = 40;
  const from = Math.max(0, start - margin);
  const to = Math.min(source.length, Math.max(end, start + 1) + margin);
  const cut = (from > 0 ? "…" : "") + hideControls(source.slice(from, to)) + (to < source.length ? "…" : "");
  const marks = "^".repeat(Math.max(1, Math.min(end, to) - start));
  return `${cut}\n${" ".repeat("  received: ".length + start - from + (from > 0 ? 1 : 0))}${marks}`;
}

/** Recursive descent: or, and, not, comparison. */
class FilterParser {
  private at = 0;
  private depth = 0;

  constructor(
    private readonly source: string,
    private readonly tokens: readonly FilterToken[],
  ) {}

  parse(): Filter {
    const filter = this.parseOr();
    const rest = this.peek();
    if (rest.kind !== "end") throw this.miss("&&, || or the end", rest);
    return filter;
  }

  private parseOr(): Filter {
    const parts = this.parseList("||", () => this.parseAnd());
    return parts.length === 1 ? parts[0]! : (line) => parts.some((part) => part(line));
  }

  private parseAnd(): Filter {
    const parts = this.parseList("&&", () => this.parseNot());
    return parts.length === 1 ? parts[0]! : (line) => parts.every((part) => part(line));
  }

  private parseList(operator: string, parse: () => Filter): Filter[] {
    const parts = [parse()];
    while (this.take(operator)) parts.push(parse());
    return parts;
  }

  private parseNot(): Filter {
    const token = this.peek();
    if (++this.depth > DEEPEST) throw this.miss(`at most ${DEEPEST} parentheses and ! inside each other`, token);
    try {
      if (this.take("!")) {
        const inner = this.parseNot();
        return (line) => !inner(line);
      }
      if (this.take("(")) {
        const inner = this.parseOr();
        if (!this.take(")")) throw this.miss("), which closes the parenthesis", this.peek());
        return inner;
      }
      return this.parseComparison();
    } finally {
      this.depth--;
    }
  }

  private parseComparison(): Filter {
    const left = this.parseOperand();
    const operator = this.peek();
    const compare = comparisons.get(operator.text);
    if (operator.kind !== "operator" || !compare) return this.readTruth(left);
    this.at++;
    const right = this.parseOperand();
    checkTypes(left, operator, right);
    return (line) => compare(left.read(line), right.read(line));
  }

  /** A field without a comparison: whether it is true. */
  private readTruth({ type, read, start, end, text }: Operand): Filter {
    if (type === "boolean" || type === "any") return (line) => Boolean(read(line));
    const example = type === "number" ? `${text} > 0` : `${text} ~ "error"`;
    throw new FilterMistake(`a comparison, for example ${example}`, start, end);
  }

  private parseOperand(): Operand {
    const token = this.peek();
    this.at++;
    const { start, end, text } = token;
    if (token.kind === "number" || token.kind === "string") {
      const value = token.value!;
      return { type: token.kind === "number" ? "number" : "text", read: () => value, start, end, text };
    }
    if (token.kind !== "name") {
      this.at--;
      throw this.miss("a field, a number or a text in quotes", token);
    }
    if (text === "true" || text === "false") return { type: "boolean", read: () => text === "true", start, end, text };
    if (text === "null") return { type: "null", read: () => null, start, end, text };
    return { ...findField(token), start, end, text };
  }

  private peek(): FilterToken {
    return this.tokens[this.at]!;
  }

  private take(operator: string): boolean {
    const token = this.peek();
    if (token.kind !== "operator" || token.text !== operator) return false;
    this.at++;
    return true;
  }

  private miss(expected: string, { start, end }: FilterToken): FilterMistake {
    return new FilterMistake(expected, start, Math.max(end, Math.min(start + 1, this.source.length)));
  }
}

function findField({ text, start, end }: FilterToken): Pick<Operand, "type" | "read"> {
  const field = filterFields.get(text);
  if (field) return field;
  const [family, ...rest] = text.split(".");
  const read = filterFamilies.get(family!);
  const name = rest.join(".");
  if (read && name !== "") return { type: "any", read: (line) => read(line, name) };
  if (read) throw new FilterMistake(`a name after it: ${family}.<name>`, start, end);
  const operator = operatorWords.get(text.toLowerCase());
  if (operator) throw new FilterMistake(operator, start, end);
  const known = [...filterFields.keys(), ...[...filterFamilies.keys()].map((key) => `${key}.<name>`)];
  const nearest = findNearest(text, [...filterFields.keys(), ...filterFamilies.keys()]);
  throw new FilterMistake(nearest ? `a field; perhaps ${nearest}` : `a field: ${known.join(", ")}`, start, end);
}

/** true and false count as 1 and 0, which is what judges mean by them: `parts.acc == 1`. */
const plain = (value: FilterValue) => (typeof value === "boolean" ? Number(value) : value);
const ordered = (holds: (a: number, b: number) => boolean) => (a: FilterValue, b: FilterValue) => {
  const [x, y] = [plain(a), plain(b)];
  return typeof x === "number" && typeof y === "number" && holds(x, y);
};
const equals = (a: FilterValue, b: FilterValue) => plain(a) === plain(b);
const contains = (text: FilterValue, part: FilterValue) =>
  text !== null && String(text).toLowerCase().includes(String(part).toLowerCase());

const comparisons = new Map<string, (a: FilterValue, b: FilterValue) => boolean>([
  ["<", ordered((a, b) => a < b)],
  ["<=", ordered((a, b) => a <= b)],
  [">", ordered((a, b) => a > b)],
  [">=", ordered((a, b) => a >= b)],
  ["==", equals],
  ["=", equals],
  ["!=", (a, b) => !equals(a, b)],
  ["~", contains],
  ["!~", (text, part) => !contains(text, part)],
]);

/** @throws FilterMistake when a comparison would never hold, or always. */
function checkTypes(left: Operand, operator: FilterToken, right: Operand): void {
  const describe = ({ type, text }: Operand) => `${text} is ${type === "text" ? "a text" : `a ${type}`}`;
  if (operator.text.endsWith("~")) {
    if (right.type === "text" && (left.type === "text" || left.type === "any")) return;
    const wrong = left.type === "text" || left.type === "any" ? right : left;
    throw new FilterMistake(`a text (${describe(wrong)})`, wrong.start, wrong.end);
  }
  if (operator.text.startsWith("<") || operator.text.startsWith(">")) {
    for (const operand of [left, right])
      if (operand.type === "text" || operand.type === "null")
        throw new FilterMistake(`a number (${describe(operand)})`, operand.start, operand.end);
    return;
  }
  const kinds = [left, right].map(({ type }) => (type === "boolean" ? "number" : type));
  if (kinds.includes("any") || kinds.includes("null") || kinds[0] === kinds[1]) return;
  const hint = right.type !== "text" && left.type === "text" ? `; a text stands in quotes: "${right.text}"` : "";
  throw new FilterMistake(`values of one kind (${describe(left)}, ${describe(right)}${hint})`, right.start, right.end);
}
