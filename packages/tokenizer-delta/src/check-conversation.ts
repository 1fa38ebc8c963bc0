import type { ChatMessage, ToolSchema } from "@cria/core";
import { checkTokenization, type SanityCheckMode, type TokenizationCheck } from "./check-tokenization.js";
import type { DeltaTokenizer } from "./delta-tokenizer.js";

export interface ConversationToCheck {
  messages: readonly ChatMessage[];
  tools?: readonly ToolSchema[];
  /** Prompt, sampled turns and deltas, in order. */
  tokenIds: ArrayLike<number>;
  /** 1 where a token was sampled; as long as `tokenIds`. */
  mask?: ArrayLike<number>;
  mode?: SanityCheckMode;
}

/**
 * The sanity check at the end of a rollout: its tokens against the template's rendering of the whole conversation.
 * What a template prints after the last token that the rollout could have (the newline after an end-of-turn token, or
 * that token itself when the turn was cut) is left out. Never throws: a template that refuses gives "unchecked".
 */
export function checkConversation(tokenizer: DeltaTokenizer, conversation: ConversationToCheck): TokenizationCheck {
  const { messages, tools = [], tokenIds, mask, mode = "strict" } = conversation;
  if (mode === "disable") return { kind: "equal" };
  try {
    const lastIsAssistant = messages.at(-1)?.role === "assistant";
    const whole = tokenizer.render(messages, tools, !lastIsAssistant);
    const ids = stripBos(tokenizer, tokenIds, whole);
    const offset = tokenIds.length - ids.length;
    const text = lastIsAssistant ? cutTail(tokenizer, whole, ids) : whole;
    return checkTokenization(ids, text, tokenizer.tokenizer, mode, mask && Array.from(mask).slice(offset));
  } catch (error) {
    return { kind: "unchecked", reason: (error as Error).message };
  }
}

/** The rendering up to where the last turn was sampled. */
function cutTail(tokenizer: DeltaTokenizer, whole: string, ids: ArrayLike<number>): string {
  const ends = tokenizer
    .listEndTexts()
    .map((text) => ({ text, at: whole.lastIndexOf(text) }))
    .filter(({ text, at }) => at >= 0 && whole.slice(at + text.length).trim() === "");
  const [end] = ends.sort((a, b) => b.at - a.at);
  if (!end) return whole;
  const last = ids.length > 0 ? tokenizer.specialTokens.textOf(ids[ids.length - 1]!) : null;
  const ended = last !== null && tokenizer.listEndTexts().includes(last);
  return whole.slice(0, ended ? end.at + end.text.length : end.at);
}

/** Without the BOS token in front, where the template does not print it. */
function stripBos(tokenizer: DeltaTokenizer, tokenIds: ArrayLike<number>, whole: string): ArrayLike<number> {
  const bos = tokenizer.bosToken;
  if (bos === null || tokenIds[0] !== bos) return tokenIds;
  const text = tokenizer.tokenizer.detokenize([bos]);
  return whole.startsWith(text) ? tokenIds : Array.from(tokenIds).slice(1);
}
