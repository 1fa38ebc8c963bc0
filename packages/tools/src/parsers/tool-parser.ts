import type { ToolSchema } from "@cria/core";

/** A call found in sampled text. `error` says, for the model to read, why it cannot be run. */
export interface ParsedToolCall {
  /** Empty where a malformed call did not say it. */
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
  /** What a template is given of the turn beside its calls, where that is not `content`: formats of whole turns say it. */
  message?: { content: string; reasoning_content?: string };
}

/**
 * Reads tool calls from a turn's text, control tokens written out. Must never throw and take time linear in the text.
 * What a model thinks (`<think>...</think>`, also without its end) is content: a call that is only thought of is none.
 * `tools` are the schemas that the model saw; formats whose arguments are plain text need them to type the values.
 */
export type ToolParser = (text: string, tools?: readonly ToolSchema[]) => ParsedTurn;
