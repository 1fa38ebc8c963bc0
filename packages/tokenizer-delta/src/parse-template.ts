import { Environment, formatNow, type Node, parseProgram } from "./jinja-library.js";
import { LimitedInterpreter, markGuarded } from "./limited-interpreter.js";
import { checkSource, type RenderLimits, RenderMeter } from "./render-limits.js";

/**
 * @huggingface/jinja lacks features that some templates rely on. Python's Jinja and llama.cpp's agree on these points,
 * and the tests compare with the latter on every template of its release:
 * - `text.strip("\n")`, `lstrip` and `rstrip` remove only the given characters, not all whitespace;
 * - a loop over an undefined value, and its `length`, are empty; nothing is in it, and as a text it is empty;
 * - the filter `string` writes as Python does: None, True, `['a']`;
 * - `text.format(...)` puts texts in place of each `{}`;
 * - mappings may have integers as keys, and lists have `append` and `pop`;
 * - a mapping has no entry of an undefined key, and an undefined value is iterable.
 * The parsed program is changed accordingly: the methods become calls of a function, the values get an `or []`. It runs
 * under limits.
 * @throws TemplateLimitError for a source that is too long, and in `render`; otherwise the library's errors.
 */
export function parseTemplate(
  source: string,
  limits: RenderLimits,
): { render(variables: Record<string, unknown>): string } {
  checkSource(source);
  const program = parseProgram(source);
  amend(program);
  return {
    render(variables) {
      const meter = new RenderMeter(limits, variables);
      const environment = new Environment();
      for (const [name, value] of Object.entries({ ...makeGlobals(meter), ...variables })) environment.set(name, value);
      return new LimitedInterpreter(environment, meter).run(program).value as string;
    },
  };
}

const STRIP = "cria_strip_7f3a";

/** Variables of every template; the library only creates its own for its own interpreter. */
function makeGlobals(meter: RenderMeter): Record<string, unknown> {
  return {
    true: true,
    True: true,
    false: false,
    False: false,
    none: null,
    None: null,
    raise_exception: (message: unknown) => {
      throw new Error(String(message));
    },
    range: (start: unknown, stop?: unknown, step?: unknown) => makeRange(meter, start, stop, step),
    strftime_now: formatNow,
    [STRIP]: stripCharacters,
  };
}

/** Python's range(). */
function makeRange(meter: RenderMeter, start: unknown, stop: unknown = null, step: unknown = 1): number[] {
  const [from, to] = stop === null ? [0, start] : [start, stop];
  if (typeof from !== "number" || typeof to !== "number" || typeof step !== "number")
    throw new Error("range() takes numbers");
  if (step === 0) throw new Error("range() step must not be zero");
  const length = Math.max(0, Math.ceil((to - from) / step));
  // Number of characters in such a list.
  meter.checkSize(10 * length);
  return Array.from({ length }, (_, i) => from + i * step);
}

const sides: Record<string, string> = { strip: "both", lstrip: "left", rstrip: "right" };

function amend(node: Node): void {
  for (const value of Object.values(node)) {
    for (const child of value instanceof Map ? [...value.keys(), ...value.values()] : [value].flat()) {
      if (isNode(child)) amend(child);
    }
  }
  if (node.type === "CallExpression") amendCall(node);
  if (node.type === "FilterStatement") amendFilterStatement(node);
  if (node.type === "For") node["iterable"] = orEmpty(node["iterable"] as Node);
  if (node.type === "FilterExpression" && (node["filter"] as Node)["value"] === "length")
    node["operand"] = orEmpty(node["operand"] as Node);
  markGuarded(node);
}

function amendCall(node: Node): void {
  const callee = node["callee"] as Node;
  const args = node["args"] as Node[];
  if (callee.type !== "MemberExpression" || callee["computed"] || args.length !== 1) return;
  const side = sides[String((callee["property"] as Node)["value"])];
  if (side === undefined) return;
  node["callee"] = makeNode(node, { type: "Identifier", value: STRIP });
  node["args"] = [callee["object"], args[0], makeNode(node, { type: "StringLiteral", value: side })];
}

/**
 * Converts `{% filter f %}...{% endfilter %}` to a filter of the block's output, so that the interpreter guards filters
 * in one place.
 */
function amendFilterStatement(node: Node): void {
  const always = makeNode(node, { type: "IntegerLiteral", value: 1 });
  node["operand"] = makeNode(node, { type: "If", test: always, body: node["body"], alternate: [] });
  node.type = "FilterExpression";
  delete node["body"];
}

function orEmpty(value: Node): Node {
  if (value.type === "SelectExpression") return makeNode(value, { ...value, lhs: orEmpty(value["lhs"] as Node) });
  return makeNode(value, {
    type: "BinaryExpression",
    operator: makeNode(value, { type: "Identifier", value: "or" }),
    left: value,
    right: makeNode(value, { type: "ArrayLiteral", value: [] }),
  });
}

/**
 * A node with the library's prototype, by which the library recognizes nodes when it looks for the variables of a
 * macro.
 */
function makeNode(like: Node, fields: Node): Node {
  return Object.assign(Object.create(Object.getPrototypeOf(like)) as Node, fields);
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

function stripCharacters(text: string, characters: string | null, side: string): string {
  if (characters === null) return text.trim();
  const stripped = new Set(characters.split(""));
  let from = 0;
  let to = text.length;
  if (side !== "right") while (from < to && stripped.has(text[from]!)) from++;
  if (side !== "left") while (to > from && stripped.has(text[to - 1]!)) to--;
  return text.slice(from, to);
}
