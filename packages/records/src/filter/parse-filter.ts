import { ConfigError } from "@cria/core";
import { findNearest } from "@cria/core/internal";
import type { DumpLine } from "../dump/dump-line.js";
import { type FilterType, type FilterValue, filterFamilies, filterFields } from "./filter-fields.js";
import { FilterMistake, type FilterToken, scanFilter } from "./scan-filter.js";

/** True for a conversation that is kept. */
export type Filter = (line: DumpLine) => boolean;

/** Returns the reader of a field, given its name. */
export type BindField<T> = (name: string) => (item: T) => FilterValue;

/** A value per conversation: a field, or a constant. */
interface Operand<T> {
  type: FilterType | "null";
  read: (item: T) => FilterValue;
  start: number;
  end: number;
  /** Source text. */
  text: string;
}

const LONGEST = 10_000;
/** Maximum nesting depth of parentheses and negations. */
const DEEPEST = 200;

/**
 * Parses a filter of conversations, such as `reward<1 && (tool_errors>0 || text ~ "error")`.
 *
 * - `&&`, `||`, `!`, parentheses; `&&` binds tighter than `||`.
 * - `<`, `<=`, `>`, `>=` compare numbers, `==` (or `=`) and `!=` any values, including `null`. A value that a
 * conversation lacks is null: less and greater are then false.
 * - `~` and `!~`: true if a text contains (does not contain) another, ignoring case.
 * - Fields: `filterFields`, and `parts.<name>`, `extra.<name>`, `metrics.<name>`. Texts are quoted by `"` or `'`,
 * with `\` before quotes inside.
 *
 * @param subject name of the filter's source for errors: `--filter`.
 * @throws ConfigError that points at the mistake and names the nearest field.
 */
export function parseFilter(source: string, subject = "filter"): Filter {
  return parseFilterOf(source, readField, subject);
}

/**
 * The same for other items than lines of dumps, for example rows of an index.
 * @param bind called once for each field that the filter names.
 * @throws ConfigError
 */
export function parseFilterOf<T>(source: string, bind: BindField<T>, subject = "filter"): (item: T) => boolean {
  try {
    if (source.length > LONGEST) throw new FilterMistake(`at most ${LONGEST} characters`, 0, 1);
    return new FilterParser(source, scanFilter(source), bind).parse();
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

type Test<T> = (item: T) => boolean;

/** Operators of other languages, with their equivalents here. */
const operatorWords = new Map([
  ["and", "&&"],
  ["or", "||"],
  ["not", "!"],
]);

/** Errors quote the source, and a terminal would execute control characters in it. */
function hideControls(text: string): string {
  return text.replace(/\p{C}/gu, " ");
}

/** The line of the source with the mistake underlined. The error prints "  received: " before it. */
function pointAt(source: string, { start, end }: FilterMistake): string {
  const margin = 40;
  const from = Math.max(0, start - margin);
  const to = Math.min(source.length, Math.max(end, start + 1) + margin);
  const cut = (from > 0 ? "…" : "") + hideControls(source.slice(from, to)) + (to < source.length ? "…" : "");
  const marks = "^".repeat(Math.max(1, Math.min(end, to) - start));
  return `${cut}\n${" ".repeat("  received: ".length + start - from + (from > 0 ? 1 : 0))}${marks}`;
}

/**
 * Recursive descent: or, and, not, comparison. Written by hand: five libraries for expressions were tried (cel-js,
 * expr-eval, filtrex, jexl, subscript). None took more than 14 of 18 filters of the documented kinds, each
 * overflowed its stack on some text of 10,000 characters, and a regular expression that cel-js takes from a filter
 * can run for hours.
 */
class FilterParser<T> {
  private at = 0;
  private depth = 0;

  constructor(
    private readonly source: string,
    private readonly tokens: readonly FilterToken[],
    private readonly bind: BindField<T>,
  ) {}

  parse(): Test<T> {
    const filter = this.parseOr();
    const rest = this.peek();
    if (rest.kind !== "end") throw this.miss("&&, || or the end", rest);
    return filter;
  }

  private parseOr(): Test<T> {
    const parts = this.parseList("||", () => this.parseAnd());
    return parts.length === 1 ? parts[0]! : (line) => parts.some((part) => part(line));
  }

  private parseAnd(): Test<T> {
    const parts = this.parseList("&&", () => this.parseNot());
    return parts.length === 1 ? parts[0]! : (line) => parts.every((part) => part(line));
  }

  private parseList(operator: string, parse: () => Test<T>): Test<T>[] {
    const parts = [parse()];
    while (this.take(operator)) parts.push(parse());
    return parts;
  }

  private parseNot(): Test<T> {
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

  private parseComparison(): Test<T> {
    const left = this.parseOperand();
    const operator = this.peek();
    const compare = comparisons.get(operator.text);
    if (operator.kind !== "operator" || !compare) return this.readTruth(left);
    this.at++;
    const right = this.parseOperand();
    checkTypes(left, operator, right);
    return (line) => compare(left.read(line), right.read(line));
  }

  /** A field without a comparison counts by its truth value. */
  private readTruth({ type, read, start, end, text }: Operand<T>): Test<T> {
    if (type === "boolean" || type === "any") return (line) => Boolean(read(line));
    const example = type === "number" ? `${text} > 0` : `${text} ~ "error"`;
    throw new FilterMistake(`a comparison, for example ${example}`, start, end);
  }

  private parseOperand(): Operand<T> {
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
    return { type: findType(token), read: this.bind(text), start, end, text };
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

/** @param name name of an existing field. */
function readField(name: string): (line: DumpLine) => FilterValue {
  const field = filterFields.get(name);
  if (field) return field.read;
  const [family, ...rest] = name.split(".");
  return (line) => filterFamilies.get(family!)!(line, rest.join("."));
}

/** @throws FilterMistake for an unknown field. */
function findType({ text, start, end }: FilterToken): FilterType {
  const field = filterFields.get(text);
  if (field) return field.type;
  const [family, name = ""] = text.split(".");
  const isFamily = filterFamilies.has(family!);
  if (isFamily && name !== "") return "any";
  if (isFamily) throw new FilterMistake(`a name after it: ${family}.<name>`, start, end);
  const operator = operatorWords.get(text.toLowerCase());
  if (operator) throw new FilterMistake(operator, start, end);
  const known = [...filterFields.keys(), ...[...filterFamilies.keys()].map((key) => `${key}.<name>`)];
  const nearest = findNearest(text, [...filterFields.keys(), ...filterFamilies.keys()]);
  throw new FilterMistake(nearest ? `a field; perhaps ${nearest}` : `a field: ${known.join(", ")}`, start, end);
}

/** true and false count as 1 and 0, as in judges' results: `parts.acc == 1`. */
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

type Typed = Pick<Operand<never>, "type" | "text" | "start" | "end">;

/** @throws FilterMistake when a comparison is always true or always false. */
function checkTypes(left: Typed, operator: FilterToken, right: Typed): void {
  const describe = ({ type, text }: Typed) => `${text} is ${type === "text" ? "a text" : `a ${type}`}`;
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
