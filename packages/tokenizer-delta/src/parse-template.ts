import { Template } from "@huggingface/jinja";

/**
 * @huggingface/jinja leaves out what some templates rely on; Python's Jinja and llama.cpp's agree on these points, and
 * the tests compare with the latter on every template of its release:
 * - `text.strip("\n")`, `lstrip` and `rstrip` remove the given characters only, not all whitespace;
 * - a loop over an undefined value, and its `length`, are empty.
 * The parsed program is changed for that: the methods become calls of a function, the values get an `or []`.
 */
export function parseTemplate(source: string): { render(variables: Record<string, unknown>): string } {
  const template = new Template(source);
  amend(template.parsed as unknown as Node);
  return { render: (variables) => template.render({ ...variables, [STRIP]: stripCharacters }) };
}

const STRIP = "cria_strip_7f3a";
const sides: Record<string, string> = { strip: "both", lstrip: "left", rstrip: "right" };

/** A node of the parsed program; what it holds besides depends on its type. */
interface Node {
  type: string;
  [key: string]: unknown;
}

function amend(node: Node): void {
  for (const value of Object.values(node)) {
    for (const child of value instanceof Map ? [...value.keys(), ...value.values()] : [value].flat()) {
      if (isNode(child)) amend(child);
    }
  }
  if (node.type === "CallExpression") amendCall(node);
  if (node.type === "For") node["iterable"] = orEmpty(node["iterable"] as Node);
  if (node.type === "FilterExpression" && (node["filter"] as Node)["value"] === "length")
    node["operand"] = orEmpty(node["operand"] as Node);
}

function amendCall(node: Node): void {
  const callee = node["callee"] as Node;
  const args = node["args"] as Node[];
  if (callee.type !== "MemberExpression" || callee["computed"] || args.length !== 1) return;
  const side = sides[String((callee["property"] as Node)["value"])];
  if (side === undefined) return;
  node["callee"] = { type: "Identifier", value: STRIP };
  node["args"] = [callee["object"], args[0], { type: "StringLiteral", value: side }];
}

function orEmpty(value: Node): Node {
  if (value.type === "SelectExpression") return { ...value, lhs: orEmpty(value["lhs"] as Node) };
  return {
    type: "BinaryExpression",
    operator: { type: "Identifier", value: "or" },
    left: value,
    right: { type: "ArrayLiteral", value: [] },
  };
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

function stripCharacters(text: string, characters: string | null, side: string): string {
  if (characters === null) return text.trim();
  let from = 0;
  let to = text.length;
  if (side !== "right") while (from < to && characters.includes(text[from]!)) from++;
  if (side !== "left") while (to > from && characters.includes(text[to - 1]!)) to--;
  return text.slice(from, to);
}
