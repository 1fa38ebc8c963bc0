import type { ToolSchema } from "@cria/core";

/** A call found in sampled text. `error` tells the model why the call cannot be run. */
export interface ParsedToolCall {
  /** Name of the tool; empty when a malformed call has none. */
  name: string;
  arguments: Record<string, unknown>;
  /** The model's id for the call, where the format has ids. */
  id?: string;
  error?: string;
  /** The model's text of a call that cannot be run, marks included; only with `error`. */
  text?: string;
}

export interface ParsedTurn {
  /** The text without its calls. */
  content: string;
  calls: ParsedToolCall[];
  /**
   * The turn's message for a template, without its calls, where that is not `content`; formats of whole turns set it.
   */
  message?: { content: string; reasoning_content?: string };
}

/**
 * Reads tool calls from a turn's text, control tokens written out. It must never throw and take time linear in the
 * text. A model's thoughts (`<think>...</think>`, also without an end) are content: text in them is never a call.
 * `tools` are the schemas that the model saw; formats whose arguments are plain text need them to type the values.
 */
export type ToolParser = (text: string, tools?: readonly ToolSchema[]) => ParsedTurn;
