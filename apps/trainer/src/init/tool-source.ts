import type { ToolSchema } from "@cria/core";
import { ToolError } from "@cria/core";

/** Existing tools, and their use in a new task. */
export interface ToolSource {
  /** Text of the task's tools.yaml. */
  toolsFile: string;
  schemas: ToolSchema[];
  /** Origin of the tools, for a README: "the MCP server `npx server`". */
  origin: string;
}

/**
 * The wanted names; all without a wish.
 * @throws ToolError for an unknown name.
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
