import type { ToolSchema } from "@cria/core";
import { ToolError } from "@cria/core";

/** Tools that exist already, and how a task of its own uses them. */
export interface ToolSource {
  /** Text of the task's tools.yaml. */
  toolsFile: string;
  schemas: ToolSchema[];
  /** Where the tools come from, in the words of a README: "the MCP server `npx server`". */
  origin: string;
}

/**
 * The wanted ones among named things; all where none are wanted.
 * @throws ToolError for a name that is not there.
 */
export function selectNames(names: readonly string[], wanted: readonly string[] | null, subject: string): string[] {
  const missing = wanted?.filter((name) => !names.includes(name)) ?? [];
  if (missing.length === 0) return [...(wanted ?? names)];
  throw new ToolError(`has no ${missing.join(", ")}`, {
    code: "tool/not-found",
    subject,
    expected: `--tools among ${names.join(", ")}`,
    received: missing.join(", "),
  });
}
