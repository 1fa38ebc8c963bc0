import type { ToolSchema } from "@cria/core";

/** A call found in sampled text. `error` says, for the model to read, why it cannot be run. */
export interface ParsedToolCall {
  /** Name of the tool; empty when a malformed call has none. */
  name: string;
  arguments: Record<string, unknown>;
  /** Id that the model gave the call, where its format has ids. */
  id?: string;
  error?: string;
  /** What the model wrote of a call that cannot be run, marks included; only with `error`. */
  text?: string;
}

export interface ParsedTurn {
  /** The text without its calls. */
  content: string;
  calls: ParsedToolCall[];
  /** What a template gets of the turn besides its calls, where that is not `content`; formats of whole turns set it. */
  message?: { content: string; reasoning_content?: string };
}

/**
 * Reads tool calls from a turn's text, control tokens written out. Must never throw and take time linear in the text.
 * What a model thinks (`<think>...</think>`, also without its end) is content: what looks like a call in there is not
 * one. `tools` are the schemas that the model saw; formats whose arguments are plain text need them to type the values.
 */
export type ToolParser = (text: string, tools?: readonly ToolSchema[]) => ParsedTurn;
