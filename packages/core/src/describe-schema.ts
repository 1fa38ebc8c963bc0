// Types only: importing the definition of a task loads no zod. A schema of another copy of zod is described as well.
import type { z } from "zod";
import { formatValue } from "./format-value.js";

/** True if a schema is of one of these types, by zod's names. */
function isOf<Type extends keyof SchemaTypes>(
  schema: z.ZodType | undefined,
  ...types: Type[]
): schema is SchemaTypes[Type] {
  return schema !== undefined && (types as string[]).includes(schema.def.type);
}

interface SchemaTypes {
  default: z.ZodDefault;
  prefault: z.ZodPrefault;
  optional: z.ZodOptional;
  nullable: z.ZodNullable;
  pipe: z.ZodPipe;
  transform: z.ZodTransform;
  object: z.ZodObject;
  record: z.ZodRecord;
  array: z.ZodArray;
  tuple: z.ZodTuple;
  union: z.ZodUnion;
  enum: z.ZodEnum;
  literal: z.ZodLiteral;
  number: z.ZodNumber;
  bigint: z.ZodBigInt;
  boolean: z.ZodBoolean;
  string: z.ZodString;
}

/** The schema of a value without its defaults and transformations; null stays allowed. */
function unwrap(schema: z.ZodType): z.ZodType {
  let node = schema;
  for (;;) {
    if (isOf(node, "default", "prefault", "optional")) node = node.def.innerType as z.ZodType;
    // z.preprocess begins with a transformation, followed by the expected schema; z.transform ends with one.
    else if (isOf(node, "pipe")) {
      const begin = node.def.in as z.ZodType;
      node = isOf(begin, "transform") ? (node.def.out as z.ZodType) : begin;
    } else return node;
  }
}

/** The schema at a path; undefined when there is none. */
export function findSchema(schema: z.ZodType, path: readonly string[]): z.ZodType | undefined {
  let node: z.ZodType | undefined = unwrap(schema);
  for (const part of path) {
    while (isOf(node, "nullable")) node = unwrap(node.unwrap() as z.ZodType);
    if (isOf(node, "object")) node = node.shape[part] as z.ZodType | undefined;
    else if (isOf(node, "array")) node = node.element as z.ZodType;
    else if (isOf(node, "record")) node = node.valueType as z.ZodType;
    else if (isOf(node, "tuple")) node = node.def.items[Number(part)] as z.ZodType | undefined;
    else return undefined;
    if (node) node = unwrap(node);
  }
  return node;
}

/** Description of a valid value: "a whole number, at least 1", "one of a, b". */
export function describeSchema(schema: z.ZodType): string {
  const node = unwrap(schema);
  if (isOf(node, "nullable")) return `${describeSchema(node.unwrap() as z.ZodType)}, or null`;
  if (isOf(node, "number")) return describeNumber(node);
  if (isOf(node, "bigint")) return "a whole number";
  if (isOf(node, "boolean")) return "true or false";
  if (isOf(node, "enum")) return `one of ${node.options.join(", ")}`;
  if (isOf(node, "literal")) return [...node.values].map(formatValue).join(" or ");
  if (isOf(node, "array")) return `a list; each entry ${describeSchema(node.element as z.ZodType)}`;
  if (isOf(node, "tuple")) return `a list of ${node.def.items.length} values`;
  if (isOf(node, "union")) return node.options.map((each) => describeSchema(each as z.ZodType)).join("; or ");
  if (isOf(node, "object", "record")) return "a mapping of keys and values";
  if (isOf(node, "string")) return node.format === "url" ? "an address that begins with http:// or https://" : "a text";
  return "another value";
}

function describeNumber(node: z.ZodNumber): string {
  const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = node.toJSONSchema();
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
 * Option of `safeParse`: keeps a schema's own messages in its issues, and leaves the library's messages empty, for
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
