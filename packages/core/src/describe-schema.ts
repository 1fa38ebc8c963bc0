import { z } from "zod";
import { formatValue } from "./format-value.js";

/** The schema of a value without its defaults and transformations; null stays allowed. */
function unwrap(schema: z.ZodType): z.ZodType {
  let node = schema;
  for (;;) {
    if (node instanceof z.ZodDefault || node instanceof z.ZodPrefault || node instanceof z.ZodOptional)
      node = node.def.innerType as z.ZodType;
    // z.preprocess begins with a transformation, followed by the expected schema; z.transform ends with one.
    else if (node instanceof z.ZodPipe)
      node = (node.def.in instanceof z.ZodTransform ? node.def.out : node.def.in) as z.ZodType;
    else return node;
  }
}

/** The schema at a path; undefined when there is none. */
export function findSchema(schema: z.ZodType, path: readonly string[]): z.ZodType | undefined {
  let node: z.ZodType | undefined = unwrap(schema);
  for (const part of path) {
    while (node instanceof z.ZodNullable) node = unwrap(node.unwrap() as z.ZodType);
    if (node instanceof z.ZodObject) node = node.shape[part] as z.ZodType | undefined;
    else if (node instanceof z.ZodArray) node = node.element as z.ZodType;
    else if (node instanceof z.ZodRecord) node = node.valueType as z.ZodType;
    else if (node instanceof z.ZodTuple) node = node.def.items[Number(part)] as z.ZodType | undefined;
    else return undefined;
    if (node) node = unwrap(node);
  }
  return node;
}

/** Description of a valid value: "a whole number, at least 1", "one of a, b". */
export function describeSchema(schema: z.ZodType): string {
  const node = unwrap(schema);
  if (node instanceof z.ZodNullable) return `${describeSchema(node.unwrap() as z.ZodType)}, or null`;
  if (node instanceof z.ZodNumber) return describeNumber(node);
  if (node instanceof z.ZodBigInt) return "a whole number";
  if (node instanceof z.ZodBoolean) return "true or false";
  if (node instanceof z.ZodEnum) return `one of ${node.options.join(", ")}`;
  if (node instanceof z.ZodLiteral) return [...node.values].map(formatValue).join(" or ");
  if (node instanceof z.ZodArray) return `a list; each entry ${describeSchema(node.element as z.ZodType)}`;
  if (node instanceof z.ZodTuple) return `a list of ${node.def.items.length} values`;
  if (node instanceof z.ZodUnion) return node.options.map((each) => describeSchema(each as z.ZodType)).join("; or ");
  if (node instanceof z.ZodObject || node instanceof z.ZodRecord) return "a mapping of keys and values";
  if (node instanceof z.ZodURL) return "an address that begins with http:// or https://";
  if (node instanceof z.ZodString) return "a text";
  return "another value";
}

function describeNumber(node: z.ZodNumber): string {
  const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = z.toJSONSchema(node);
  const bounds: string[] = [];
  // Whole numbers are bounded by exact representation, which is no use to the reader.
  const say = (word: string, bound: number | boolean | undefined) => {
    if (typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER) bounds.push(`${word} ${bound}`);
  };
  say("at least", minimum);
  say("above", exclusiveMinimum);
  say("at most", maximum);
  say("below", exclusiveMaximum);
  return [type === "integer" ? "a whole number" : "a number", bounds.join(" and ")].filter(Boolean).join(", ");
}

/**
 * For `safeParse`: keeps a schema's own messages in its issues, and leaves the library's messages empty, for
 * `describeIssue` to write.
 */
export const withoutLibraryTexts = { error: () => "" };

/** Description of a valid value at an issue's place. @param issue of a parse `withoutLibraryTexts`. */
export function describeIssue(schema: z.ZodType, issue: z.core.$ZodIssue): string {
  const own = findOwnMessage(issue);
  if (own !== "") return own;
  if (issue.code === "unrecognized_keys") return `no key ${issue.keys.map((key) => `"${key}"`).join(", ")}`;
  const found = findSchema(schema, issue.path.map(String));
  const expected = found ? describeSchema(found) : "another value";
  if (issue.code !== "too_small" || (issue.origin !== "array" && issue.origin !== "string")) return expected;
  return `${expected}; at least ${issue.minimum} ${issue.origin === "array" ? "of them" : "character"}`;
}

/** The schema's own message, possibly from one alternative of a union; else "". */
function findOwnMessage(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_union") return issue.message;
  return issue.errors.flat().map(findOwnMessage).find(Boolean) ?? "";
}
