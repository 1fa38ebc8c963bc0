import type { JsonSchema, ToolSchema } from "@cria/core";
import type { ToolOrigin } from "@cria/tools";
import { findSchemaProblem } from "@cria/tools/internal";
import type { Findings } from "./finding.js";

/**
 * Checks a tool's OpenAI function schema, which templates print and arguments are checked against.
 * @param origin origin of the tool: users cannot repair a server's schema.
 * @returns true if it is usable.
 */
export function checkSchema(schema: ToolSchema | undefined, findings: Findings, origin: ToolOrigin = "own"): boolean {
  const fail = (problem: string, remedy?: string): false => {
    findings.error("schema", problem, remedy);
    return false;
  };
  const missing = (problem: string) => {
    if (origin !== "mcp") findings.warning("schema", problem);
    else
      findings.hint(
        "schema",
        `${problem}; only the server's author can repair it`,
        "give one as tool_schema in the config, if the model needs it",
      );
  };
  const remedy = "use defineToolSchema(name, description, zodObject)";
  const definition = schema?.function;
  if (schema?.type !== "function" || typeof definition !== "object" || definition === null)
    return fail(`is not { type: "function", function: { name, description, parameters } }`, remedy);
  if (typeof definition.name !== "string" || !/^[\w-]{1,64}$/.test(definition.name))
    return fail(`name ${JSON.stringify(definition.name)} is not 1 to 64 letters, digits, _ or -`);
  if (!definition.description)
    missing(origin === "mcp" ? "has no description" : "has no description, from which the model learns its purpose");
  const { parameters } = definition;
  if (typeof parameters !== "object" || parameters === null || (parameters.type ?? "object") !== "object") {
    const problem = findSchemaProblem(schema);
    return fail(
      `parameters is not a JSON Schema of type "object"${problem ? `: ${problem.received}; expected ${problem.expected}` : ""}`,
      remedy,
    );
  }
  const problem = findSchemaProblem(schema);
  if (problem) return fail(`is not a valid JSON Schema: ${problem.received}; expected ${problem.expected}`);
  try {
    JSON.stringify(schema);
  } catch (error) {
    return fail(`cannot be written as JSON: ${(error as Error).message}`);
  }
  const properties = (parameters.properties ?? {}) as Record<string, JsonSchema>;
  for (const [name, property] of Object.entries(properties))
    if (!property?.description) missing(`parameter "${name}" has no description`);
  return true;
}
