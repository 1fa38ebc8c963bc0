import { type ChatMessage, contentText, type ToolSchema } from "@cria/core";
import { structureTurn } from "@cria/episodes";
import { VECTOR } from "@cria/rollout/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ToolParser } from "@cria/tools";
import type { DumpLine } from "./dump-line.js";

/** A row for supervised training, with the columns of `cria sft`. */
export interface TrainingMessages {
  messages: ChatMessage[];
  tools: ToolSchema[];
}

export interface TrainingMessagesOptions {
  tokenizer: DeltaTokenizer;
  /** Parser of the run's `multi_turn.format`. */
  parse: ToolParser;
  /** Tools available to the conversation. */
  schemas: readonly ToolSchema[];
}

/**
 * Converts a conversation to a row for supervised training.
 * @param line with its images in memory (`DumpImages.fill`), or from a conversation that just ended.
 * @returns null if it is unfit for training: it failed, or its last turn was cut, which would teach to stop there.
 *   `isExact`: true if training will see exactly the tokens and mask of the rollout. False if the model spelled a
 * text in other tokens than its tokenizer does, or if the prompt has assistant messages, which supervised training
 * learns too.
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
  // Most templates print a turn as it was sampled; some accept calls only in separate fields.
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

/**
 * Compares the tokens of supervised training with those of the rollout; "none" if the template refuses the messages.
 */
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

/** Image vectors have no ids in a dump; equal messages contain equal images. */
function isSameToken(id: number, recorded: number): boolean {
  return recorded === VECTOR || id === recorded;
}
