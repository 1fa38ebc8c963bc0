import type { ChatMessage, ToolSchema } from "@cria/core";
import {
  type ComparedTokenizer,
  checkTokenization,
  type SanityCheckMode,
  type TokenizationCheck,
} from "./check-tokenization.js";
import type { DeltaTokenizer } from "./delta-tokenizer.js";
import { explainMismatch } from "./explain-mismatch.js";
import { FoldedImages } from "./fold-images.js";
import { type RenderedText, sliceRendered } from "./rendered-text.js";

export interface ConversationToCheck {
  messages: readonly ChatMessage[];
  tools?: readonly ToolSchema[];
  /** Prompt, sampled turns and deltas, in order. */
  tokenIds: ArrayLike<number>;
  /** 1 for sampled tokens; as long as `tokenIds`. */
  mask?: ArrayLike<number>;
  mode?: SanityCheckMode;
}

/**
 * The sanity check at the end of a rollout: compares its tokens with the template's rendering of the whole
 * conversation, which is rendered and tokenized once. It ignores text after the last token that the rollout could have
 * (the newline after an end-of-turn token, or that token itself when the turn was cut).
 * Images are compared by the hash of their files. The mask distinguishes "rewritten" and "other_end" from "mismatch";
 * without it they are mismatches too.
 * Never throws: a template that refuses, and sampled bytes that are not text, give "unchecked".
 */
export function checkConversation(tokenizer: DeltaTokenizer, conversation: ConversationToCheck): TokenizationCheck {
  const { messages, tools = [], tokenIds, mask, mode = "strict" } = conversation;
  if (mode === "disable") return { kind: "equal" };
  try {
    const lastIsAssistant = messages.at(-1)?.role === "assistant";
    const whole = tokenizer.renderMarked(messages, tools, !lastIsAssistant);
    const given = stripBos(tokenizer, tokenIds, whole.text);
    const folded = new FoldedImages(tokenizer, whole);
    const { ids, mask: maskOfIds } = folded.fold(given, mask && Array.from(mask).slice(tokenIds.length - given.length));
    const rendered = lastIsAssistant ? cutTail(tokenizer, whole, ids) : whole;
    const wholeIds = folded.tokenize(rendered);
    const compared: ComparedTokenizer = { tokenize: () => wholeIds, detokenize: (some) => folded.show(some) };
    const check = checkTokenization(ids, rendered.text, compared, mode, maskOfIds);
    if (check.kind !== "mismatch") return check;
    if (folded.detokenize(ids).includes("\uFFFD"))
      return { kind: "unchecked", reason: "some sampled bytes are no text, and no rendering can hold them" };
    const kind =
      maskOfIds && explainMismatch(tokenizer, { messages, ids, mask: maskOfIds, wholeIds, rendered, mode, folded });
    return kind ? { ...check, kind } : check;
  } catch (error) {
    return { kind: "unchecked", reason: (error as Error).message };
  }
}

/** The rendering up to the end of the sampled last turn. */
function cutTail(tokenizer: DeltaTokenizer, whole: RenderedText, ids: ArrayLike<number>): RenderedText {
  const ends = tokenizer
    .listEndTexts()
    .map((text) => ({ text, at: whole.text.lastIndexOf(text) }))
    .filter(({ text, at }) => at >= 0 && whole.text.slice(at + text.length).trim() === "");
  const [end] = ends.sort((a, b) => b.at - a.at);
  if (!end) return whole;
  const last = ids.length > 0 ? tokenizer.specialTokens.textOf(ids[ids.length - 1]!) : null;
  const ended = last !== null && tokenizer.listEndTexts().includes(last);
  return sliceRendered(whole, 0, ended ? end.at + end.text.length : end.at);
}

/** Removes a leading BOS token that the template does not print. */
function stripBos(tokenizer: DeltaTokenizer, tokenIds: ArrayLike<number>, whole: string): ArrayLike<number> {
  const bos = tokenizer.bosToken;
  if (bos === null || tokenIds[0] !== bos) return tokenIds;
  const text = tokenizer.tokenizer.detokenize([bos]);
  return whole.startsWith(text) ? tokenIds : Array.from(tokenIds).slice(1);
}
