import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { ToolError } from "@cria/core";
import type { BaseTool } from "./base-tool.js";
import { createTools, type ToolConfigEntry } from "./registry.js";

/**
 * Makes the tools of a config file, YAML or JSON: `tools: [{ class_name, config?, tool_schema? }]`. Relative names in it
 * start at its folder.
 * @throws ToolError when the file cannot be read, does not list tools, or a tool cannot be made.
 */
export async function loadToolConfig(file: string): Promise<Map<string, BaseTool>> {
  const fail = (summary: string, received: string, cause?: unknown) =>
    new ToolError(summary, {
      code: "tool/bad-config",
      subject: file,
      expected: "tools: [{ class_name, config?, tool_schema? }]",
      received,
      cause,
    });
  let content: unknown;
  try {
    const { parse } = await import("yaml");
    content = parse(await readFile(file, "utf8"));
  } catch (cause) {
    throw fail("cannot be read", (cause as Error).message, cause);
  }
  const entries = (content as { tools?: unknown } | null)?.tools;
  if (!Array.isArray(entries) || entries.some((entry) => typeof entry?.class_name !== "string")) {
    throw fail("does not list tools", JSON.stringify(entries) ?? "nothing");
  }
  return createTools(entries as ToolConfigEntry[], dirname(resolve(file)));
}
