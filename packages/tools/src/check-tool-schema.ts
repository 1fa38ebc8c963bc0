import { type JsonSchema, ToolError, type ToolSchema } from "@cria/core";
import { findNearest } from "@cria/core/internal";
import type { ErrorObject } from "ajv";
import { compileParameters, getAjv, nameOf, preview } from "./validate-arguments.js";

/** Keywords that can allow a property which `properties` does not list; `required` may then name it. */
const elsewhere = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];

/**
 * Checks a tool's schema as the model sees it: the function format, and parameters that are a JSON Schema of an object.
 * @throws ToolError with the place of the mistake and the nearest valid word.
 */
export function checkToolSchema(schema: ToolSchema): void {
  const problem = findSchemaProblem(schema);
  if (problem === null) return;
  throw new ToolError(problem.summary, {
    code: "tool/bad-schema",
    subject: problem.subject,
    expected: problem.expected,
    received: problem.received,
    remedy: "repair the tool's schema, or give one as tool_schema in the config; defineToolSchema makes one from zod",
  });
}

export interface SchemaProblem {
  subject: string;
  summary: string;
  expected: string;
  received: string;
}

/** The first mistake in a tool's schema; null when there is none. */
export function findSchemaProblem(schema: unknown): SchemaProblem | null {
  const { type, function: definition } = (schema ?? {}) as { type?: unknown; function?: unknown };
  if (type !== "function" || !isRecord(definition)) {
    const expected = '{ "type": "function", "function": { "name", "description", "parameters" } }';
    return { subject: "schema of a tool", summary: "is not a function schema", expected, received: preview(schema) };
  }
  const { name, parameters } = definition;
  if (typeof name !== "string" || name === "")
    return { subject: "name of a tool", summary: "is missing", expected: "a text", received: preview(name) };
  const subject = `parameters of tool "${name}"`;
  const summary = "is not a valid JSON Schema";
  if (!isRecord(parameters)) return { subject, summary, expected: "an object", received: preview(parameters) };
  return findParametersProblem(subject, summary, parameters);
}

function findParametersProblem(subject: string, summary: string, parameters: JsonSchema): SchemaProblem | null {
  const { $schema: _, ...plain } = parameters;
  const ajv = getAjv(parameters);
  if (ajv.validateSchema(plain) !== true) {
    const error = pickError(ajv.errors ?? []);
    const place = error.instancePath === "" ? "" : `${nameOf(error.instancePath)}: `;
    const received = `${place}${preview(error.data)}`;
    return { subject, summary, expected: describeExpected(error), received };
  }
  if (parameters.type !== undefined && parameters.type !== "object")
    return {
      subject,
      summary,
      expected: 'type "object": arguments have names',
      received: `type: ${preview(parameters.type)}`,
    };
  const missing = findRequiredWithoutProperty(parameters, "");
  if (missing) return { subject, summary, ...missing };
  try {
    compileParameters(parameters);
    return null;
  } catch (cause) {
    return {
      subject,
      summary,
      expected: "references that resolve, and valid patterns",
      received: describeCompile(cause),
    };
  }
}

/** The most specific error: a wrong word before a wrong type, and both before the anyOf that holds them. */
function pickError(errors: readonly ErrorObject[]): ErrorObject {
  const deepest = Math.max(...errors.map((error) => error.instancePath.length));
  const there = errors.filter((error) => error.instancePath.length === deepest);
  const find = (keyword: string) => there.find((error) => error.keyword === keyword);
  return find("enum") ?? find("type") ?? there[0]!;
}

function describeExpected({ keyword, params, data }: ErrorObject): string {
  if (keyword === "enum") {
    const words = params.allowedValues as string[];
    const nearest = typeof data === "string" ? findNearest(data, words) : undefined;
    const list = words.length > 1 ? `one of ${words.join(", ")}` : words.join();
    return nearest === undefined ? list : `${list}; perhaps "${nearest}"`;
  }
  if (keyword === "type") return [params.type].flat().map(nameType).join(" or ");
  return "what JSON Schema allows there";
}

function nameType(type: string): string {
  return (
    { object: "an object", array: "a list", string: "a text", boolean: "true or false", integer: "a whole number" }[
      type
    ] ?? `a ${type}`
  );
}

/** A name in `required` that the schema lets no argument have. */
function findRequiredWithoutProperty(schema: JsonSchema, place: string): { expected: string; received: string } | null {
  const { properties, required } = schema;
  if (isRecord(properties) && Array.isArray(required) && !elsewhere.some((keyword) => keyword in schema)) {
    const names = Object.keys(properties);
    const name = required.find((each) => !names.includes(String(each)));
    if (name !== undefined) {
      const nearest = findNearest(String(name), names);
      const known =
        names.length > 0 ? `names that properties has (${names.join(", ")})` : "no names: properties is empty";
      const expected = `${known}${nearest === undefined ? "" : `; perhaps "${nearest}"`}`;
      return { expected, received: `${place}required: "${String(name)}"` };
    }
  }
  for (const [name, property] of Object.entries(isRecord(properties) ? properties : {})) {
    const inside = isRecord(property) ? findRequiredWithoutProperty(property, `${place}properties.${name}.`) : null;
    if (inside) return inside;
  }
  return isRecord(schema.items) ? findRequiredWithoutProperty(schema.items, `${place}items.`) : null;
}

function describeCompile(cause: unknown): string {
  const { missingRef, message } = cause as { missingRef?: string; message: string };
  return missingRef === undefined ? message : `$ref: "${missingRef}", which does not resolve`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
