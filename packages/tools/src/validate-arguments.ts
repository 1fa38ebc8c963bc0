import { type JsonSchema, ToolError, type ToolSchema } from "@cria/core";
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

// Schemas have many authors: unknown keywords and formats are ignored, as OpenAI and MCP's hosts do.
const options = { allErrors: true, strict: false, validateFormats: false, verbose: true, logger: false } as const;
/** A validator for each dialect, made when first needed. */
const makeDialect = { draft7: () => new Ajv(options), draft2020: () => new Ajv2020(options) };
const dialects = new Map<keyof typeof makeDialect, Ajv | Ajv2020>();
const validators = new WeakMap<JsonSchema, ValidateFunction>();

/** More problems than this do not help a model. */
const MAX_PROBLEMS = 5;

/**
 * Checks parsed arguments against a tool's JSON Schema; the message is written for the model to read. Null when they
 * fit.
 * @throws ToolError when the schema itself is wrong.
 */
export function findArgumentError(schema: ToolSchema, args: unknown): string | null {
  const validate = getValidator(schema);
  if (validate(args)) return null;
  const problems = describeErrors(validate.errors ?? []);
  const shown = problems.slice(0, MAX_PROBLEMS);
  if (problems.length > shown.length) shown.push(`and ${problems.length - shown.length} more`);
  return shown.join("; ");
}

function getValidator({ function: { name, parameters } }: ToolSchema): ValidateFunction {
  try {
    return compileParameters(parameters);
  } catch (cause) {
    throw new ToolError("is not a valid JSON Schema", {
      code: "tool/bad-schema",
      subject: `parameters of tool "${name}"`,
      expected: '{ "type": "object", "properties": {...}, "required": [...] }',
      received: (cause as Error).message,
      cause,
    });
  }
}

/**
 * The validator of a tool's parameters, made once for each object.
 * @throws Error for an invalid JSON Schema.
 */
export function compileParameters(parameters: JsonSchema): ValidateFunction {
  const known = validators.get(parameters);
  if (known) return known;
  const { $schema: _, ...plain } = parameters;
  const ajv = getAjv(parameters);
  const validate = ajv.compile(plain);
  // Two schemas may carry the same $id.
  ajv.removeSchema(plain);
  validators.set(parameters, validate);
  return validate;
}

/** The validator for a schema's dialect. */
export function getAjv({ $schema }: JsonSchema): Ajv | Ajv2020 {
  const name = /draft-0[4-7]/.test(String($schema)) ? "draft7" : "draft2020";
  const ajv = dialects.get(name) ?? makeDialect[name]();
  dialects.set(name, ajv);
  return ajv;
}

function describeErrors(errors: readonly ErrorObject[]): string[] {
  // One place may break several branches of an anyOf: one problem lists all their types.
  const types = new Map<string, { expected: Set<string>; data: unknown }>();
  const problems: string[] = [];
  for (const error of errors) {
    const place = error.instancePath;
    if (error.keyword === "anyOf" || error.keyword === "oneOf" || error.keyword === "if") continue;
    if (error.keyword === "type") {
      const entry = types.get(place) ?? { expected: new Set<string>(), data: error.data };
      for (const type of [error.params.type].flat()) entry.expected.add(String(type));
      types.set(place, entry);
      continue;
    }
    problems.push(describeError(error));
  }
  for (const [place, { expected, data }] of types) {
    problems.push(`${nameOf(place)}: expected ${[...expected].join(" or ")}, got ${preview(data)}`);
  }
  if (problems.length === 0) problems.push(...errors.map((error) => `${nameOf(error.instancePath)}: ${error.message}`));
  return [...new Set(problems)];
}

function describeError(error: ErrorObject): string {
  const inside = error.instancePath === "" ? "" : `${nameOf(error.instancePath)}: `;
  switch (error.keyword) {
    case "required":
      return `${inside}missing argument "${error.params.missingProperty}"`;
    case "additionalProperties":
    case "unevaluatedProperties": {
      const unknown = error.params.additionalProperty ?? error.params.unevaluatedProperty;
      const known = Object.keys((error.parentSchema?.properties as object | undefined) ?? {});
      return `${inside}unknown argument "${unknown}"${known.length > 0 ? `, known are ${known.join(", ")}` : ""}`;
    }
    case "enum":
      return `${nameOf(error.instancePath)}: expected one of ${preview(error.params.allowedValues)}, got ${preview(error.data)}`;
    case "const":
      return `${nameOf(error.instancePath)}: expected ${preview(error.params.allowedValue)}, got ${preview(error.data)}`;
    default:
      return `${nameOf(error.instancePath)}: ${error.message}, got ${preview(error.data)}`;
  }
}

/** "/options/0/x" as "options.0.x". */
export function nameOf(pointer: string): string {
  if (pointer === "") return "arguments";
  const keys = pointer.slice(1).split("/");
  return keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~")).join(".");
}

export function preview(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
