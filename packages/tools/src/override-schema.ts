import { isDeepStrictEqual } from "node:util";
import { ToolError, type ToolSchema } from "@cria/core";
import type { BaseTool } from "./base-tool.js";
import { checkToolSchema } from "./check-tool-schema.js";

/** Tools whose schema a config entry has replaced: one object cannot have two. */
const overridden = new WeakSet<BaseTool>();

/**
 * Gives tools of any kind the schema of their config entry. A single tool takes all of it, with its name; of several
 * tools the one with that name takes it.
 * @throws ToolError for a wrong schema, a name that no tool has, or a tool that cannot take a schema.
 */
export function overrideSchema(tools: readonly BaseTool[], schema: ToolSchema | undefined): void {
  if (schema === undefined) return;
  checkToolSchema(schema);
  const { name } = schema.function;
  const tool = tools.length === 1 ? tools[0] : tools.find((each) => each.name === name);
  const fail = (summary: string, received: string, remedy: string) =>
    new ToolError(summary, { code: "tool/bad-schema", subject: `tool_schema "${name}"`, received, remedy });
  if (!tool)
    throw fail(
      "names none of the entry's tools",
      tools.map((each) => each.name).join(", ") || "no tools",
      "name one of them, or choose one by config.tools to rename it",
    );
  if (isDeepStrictEqual(tool.schema, schema) && tool.name === name) return;
  if (overridden.has(tool))
    throw fail("is the second for its tool", "one object in two entries", "export its class instead");
  overridden.add(tool);
  try {
    Object.defineProperty(tool, "schema", { value: schema, enumerable: true, configurable: true });
    if (tool.name !== name) Object.defineProperty(tool, "name", { value: name, configurable: true });
  } catch (cause) {
    throw fail("cannot be set on its tool", (cause as Error).message, "pass it to the tool's constructor");
  }
}
