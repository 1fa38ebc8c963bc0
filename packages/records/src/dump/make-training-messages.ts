import { type ChatMessage, contentText, type ToolSchema } from "@cria/core";
import { structureTurn } from "@cria/episodes";
import { VECTOR } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ToolParser } from "@cria/tools";
import type { DumpLine } from "./dump-line.js";

/** A row for supervised training: the columns of `cria sft`. */
export interface TrainingMessages {
  messages: ChatMessage[];
  tools: ToolSchema[];
}

export interface TrainingMessagesOptions {
  tokenizer: DeltaTokenizer;
  /** Of the run's `multi_turn.format`. */
  parse: ToolParser;
  /** Of the tools that the conversation could call. */
  schemas: readonly ToolSchema[];
}

/**
 * A conversation as supervised training reads it.
 * @param line with its images in memory (`DumpImages.fill`), or of a conversation that just ended.
 * @returns null when there is nothing to learn from: it failed, or its last turn was cut, and would teach to stop
 * there.
 *   `isExact`: whether training will see exactly the tokens and mask of the rollout. It does not if the model spelled a text
 *   in other tokens than its tokenizer does, or if the prompt has assistant messages, which supervised training learns too.
 */
export function makeTrainingMessages(
  line: DumpLine,
  { tokenizer, parse, schemas }: TrainingMessagesOptions,
): { row: TrainingMessages; isExact: boolean } | null {
  const isCut = line.finish_reason === "length" || line.finish_reason === "aborted";
  const last = line.messages.findLastIndex((message) => message.role === "assistant");
  if (isCut || line.error !== null || last < line.prompt_messages) return null;
  const tools = [...schemas];
  const spoken = line.messages.slice(0, last + 1);
  const asSpoken = compareTokens(line, spoken, tools, tokenizer);
  if (asSpoken === "same") return { row: { messages: spoken, tools }, isExact: true };
  // Most templates print a turn as it was sampled. Some accept calls only in separate fields.
  const structured = spoken.map((message, i) =>
    message.role === "assistant" && i >= line.prompt_messages
      ? structureTurn(parse(contentText(message.content), tools), contentText(message.content))
      : message,
  );
  const asStructured = compareTokens(line, structured, tools, tokenizer);
  if (asStructured === "same") return { row: { messages: structured, tools }, isExact: true };
  if (asSpoken === "none" && asStructured === "none") return null;
  return { row: { messages: asSpoken === "none" ? structured : spoken, tools }, isExact: false };
}

/** Compares supervised training on the messages with the rollout: "none" when the template refuses them. */
function compareTokens(
  line: DumpLine,
  messages: readonly ChatMessage[],
  tools: readonly ToolSchema[],
  tokenizer: DeltaTokenizer,
): "same" | "other" | "none" {
  try {
    const { tokenIds, mask } = tokenizer.encodeMessagesWithMask(messages, tools);
    const end = line.response_mask.lastIndexOf(1) + 1;
    const same =
      tokenIds.length === end &&
      tokenIds.every((id, t) => isSameToken(id, line.token_ids[t]!) && mask[t] === line.response_mask[t]);
    return same ? "same" : "other";
  } catch {
    return "none";
  }
}

/** A vector has no id of its own in a dump; the same messages have the same images. */
function isSameToken(id: number, recorded: number): boolean {
  return recorded === VECTOR || id === recorded;
}
