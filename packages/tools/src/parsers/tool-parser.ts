import type { ToolSchema } from "@cria/core";

/** A call found in sampled text. `error` says, for the model to read, why it cannot be run. */
export interface ParsedToolCall {
  /** Empty where a malformed call did not say it. */
  name: string;
  arguments: Record<string, unknown>;
  error?: string;
}

export interface ParsedTurn {
  /** The text without its calls. */
  content: string;
  calls: ParsedToolCall[];
}

/**
 * Reads tool calls from a turn's text. Must never throw and take time linear in the text.
 * `tools` are the schemas that the model saw; formats whose arguments are plain text need them to type the values.
 */
export type ToolParser = (text: string, tools?: readonly ToolSchema[]) => ParsedTurn;
