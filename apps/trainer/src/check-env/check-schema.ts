import type { JsonSchema, ToolSchema } from "@cria/core";
import { findArgumentError } from "@cria/tools";
import type { Findings } from "./finding.js";

/** A tool's OpenAI function schema: what templates print and what arguments are checked against. Returns whether it is usable. */
export function checkSchema(schema: ToolSchema | undefined, findings: Findings): boolean {
  const fail = (problem: string, remedy?: string): false => {
    findings.error("schema", problem, remedy);
    return false;
  };
  const remedy = "use defineToolSchema(name, description, zodObject)";
  const definition = schema?.function;
  if (schema?.type !== "function" || typeof definition !== "object" || definition === null)
    return fail(`is not { type: "function", function: { name, description, parameters } }`, remedy);
  if (typeof definition.name !== "string" || !/^[\w-]{1,64}$/.test(definition.name))
    return fail(`name ${JSON.stringify(definition.name)} is not 1 to 64 letters, digits, _ or -`);
  if (!definition.description) findings.warning("schema", "has no description: the model learns of the tool by it");
  const { parameters } = definition;
  if (typeof parameters !== "object" || parameters === null || parameters.type !== "object")
    return fail(`parameters is not a JSON Schema of type "object"`, remedy);
  const properties = (parameters.properties ?? {}) as Record<string, JsonSchema>;
  for (const name of Array.isArray(parameters.required) ? parameters.required : []) {
    if (!Object.hasOwn(properties, String(name))) return fail(`requires "${name}", which properties does not have`);
  }
  for (const [name, property] of Object.entries(properties)) {
    if (!property?.description) findings.warning("schema", `parameter "${name}" has no description`);
  }
  try {
    findArgumentError(schema, {});
    JSON.stringify(schema);
  } catch (error) {
    return fail(`is not a JSON Schema that arguments can be checked against: ${(error as Error).message}`);
  }
  return true;
}
