import { evaluateArithmetic } from "./evaluate-arithmetic.js";
import type { Part, Word } from "./read-words.js";

/** A word after expansion. Unknown parts stay as written and are listed in `unknown`. */
export interface Field {
  text: string;
  unknown: string[];
}

/** The variables of a script that is read, not run. */
export interface Scope {
  variables: Map<string, Field[]>;
  /** Variables set under a condition that is not evaluated, with the reason. */
  undecided: Map<string, string>;
  env: Record<string, string | undefined>;
  /** Value of "$@". */
  args: readonly string[];
  /** Undecided variables for which an earlier value was used. */
  doubtful: Set<string>;
  /** Names of the environment variables that were read. */
  borrowed: Set<string>;
}

/** Expands one word to the fields that a shell would pass. `split`: unquoted values are split at blanks. */
export function expandWord(word: Word, scope: Scope, split = true): Field[] {
  const fields: Field[] = [];
  let current: Field | null = null;
  const append = (field: Field) => {
    current ??= { text: "", unknown: [] };
    current.text += field.text;
    current.unknown.push(...field.unknown);
  };
  const close = () => {
    if (current) fields.push(current);
    current = null;
  };
  for (const part of word) {
    const values = expandPart(part, scope);
    const isLiteral = part.quoted || part.kind === "text" || !split;
    for (const [i, value] of values.entries()) {
      if (i > 0) close();
      if (isLiteral || value.unknown.length > 0) append(value);
      else
        for (const [j, piece] of value.text.split(/[ \t\n]+/).entries()) {
          if (j > 0) close();
          if (piece !== "") append({ text: piece, unknown: [] });
        }
    }
  }
  close();
  return fields;
}

/** The value of an assignment: always one field, even with blanks. */
export function expandValue(word: Word, scope: Scope): Field {
  const fields = expandWord(word, scope, false);
  return joinFields(fields);
}

function joinFields(fields: readonly Field[]): Field {
  return { text: fields.map(({ text }) => text).join(" "), unknown: fields.flatMap(({ unknown }) => unknown) };
}

function expandPart(part: Part, scope: Scope): Field[] {
  if (part.kind === "text") return [{ text: part.text, unknown: [] }];
  if (part.kind === "opaque") return [{ text: part.text, unknown: [`${part.text} is not run`] }];
  if (part.kind === "variable") return expandVariable(part, scope);
  const unknown: string[] = [];
  const value = evaluateArithmetic(part.text, (name) => {
    const field = joinFields(expandVariable(makeVariable(name), scope));
    unknown.push(...field.unknown);
    return field.text;
  });
  if (value !== null && unknown.length === 0) return [{ text: String(value), unknown }];
  const text = `$((${part.text}))`;
  return [{ text, unknown: unknown.length > 0 ? unknown : [`${text} cannot be computed`] }];
}

type Variable = Extract<Part, { kind: "variable" }>;

const makeVariable = (name: string): Variable => ({
  kind: "variable",
  name,
  index: null,
  operator: null,
  operand: [],
  quoted: true,
});

function expandVariable(part: Variable, scope: Scope): Field[] {
  const { name, index, operator, operand, quoted } = part;
  const values = lookUp(name, index, scope);
  const isEmpty = !values || values.every(({ text }) => text === "");
  const isMissing = operator?.startsWith(":") ? isEmpty : !values;
  const expandOperand = () => [joinFields(expandWord(operand, scope, false))];
  switch (operator?.at(-1)) {
    case "-":
      if (isMissing) return expandOperand();
      break;
    case "=":
      if (isMissing) {
        const value = expandOperand();
        scope.variables.set(name, value);
        return value;
      }
      break;
    case "+":
      return isMissing ? [{ text: "", unknown: [] }] : expandOperand();
    case "?":
      if (isMissing) return [missing(part, scope, expandOperand()[0]!.text)];
      break;
  }
  if (!values) return [missing(part, scope, "")];
  // "${a[*]}" is one word; "${a[@]}" is one word per entry.
  return quoted && (index === "*" || name === "*") ? [joinFields(values)] : values;
}

function missing({ name, index }: Variable, scope: Scope, message: string): Field {
  const text = index === null ? `$${name}` : `\${${name}[${index}]}`;
  const reason = scope.undecided.get(name) ?? (message ? `is not set: ${message}` : "is not set");
  return { text, unknown: [`${text} ${reason}`] };
}

/** Values of a variable: one, or those of a list; undefined if it is not set. */
function lookUp(name: string, index: string | null, scope: Scope): Field[] | undefined {
  if (name === "@" || name === "*") return scope.args.map((text) => ({ text, unknown: [] }));
  const values = scope.variables.get(name);
  if (values) {
    if (scope.undecided.has(name)) scope.doubtful.add(name);
    if (index === "@" || index === "*") return values;
    const value = values[Number(index ?? 0)];
    return value && [value];
  }
  if (scope.undecided.has(name)) return undefined;
  const text = /^[A-Za-z_]/.test(name) && index === null ? scope.env[name] : undefined;
  if (text === undefined) return undefined;
  scope.borrowed.add(name);
  return [{ text, unknown: [] }];
}
