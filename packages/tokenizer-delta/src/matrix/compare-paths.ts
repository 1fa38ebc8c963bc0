import type { ChatMessage } from "@cria/core";
import { checkTokenization } from "../check-tokenization.js";
import type { DeltaTokenizer } from "../delta-tokenizer.js";
import { FoldedImages } from "../fold-images.js";
import { InferenceConversation } from "../inference-conversation.js";
import { joinIds } from "../piece-tokenizer.js";
import { cutAtImages, type RenderedText } from "../rendered-text.js";
import type { Conversation } from "./conversations.js";

/**
 * equal: at every turn the concatenated tokens are those of the whole rendering. drift: the same text in other tokens.
 * rewritten: the template prints the delta as we do, but changes earlier turns. moved: the template prints more or less
 * than the delta there. other prompt: the template prints this turn in a way that does not continue its own generation
 * prompt, so that no model can have sampled it. refused: the template throws. failed: our code throws.
 */
export type Outcome = "equal" | "drift" | "rewritten" | "moved" | "refused" | "failed";

const order: Outcome[] = ["equal", "drift", "rewritten", "moved", "refused", "failed"];

export interface Comparison {
  outcome: Outcome;
  detail: string;
  /**
   * True if production rendering equals the whole rendering at each turn: its text, and its tokens except those that
   * were sampled differently. Null when refused.
   */
  inferenceEqual: boolean | null;
  /** The delta path's tokens. */
  tokenIds: number[];
}

/** Plays a conversation turn by turn and compares each turn with rendering and tokenizing the whole. */
export function comparePaths(tokenizer: DeltaTokenizer, { messages, tools }: Conversation): Comparison {
  const result: Comparison = { outcome: "equal", detail: "", inferenceEqual: true, tokenIds: [] };
  const note = (outcome: Outcome, detail: string) => {
    if (order.indexOf(outcome) <= order.indexOf(result.outcome)) return;
    result.outcome = outcome;
    result.detail = detail;
  };
  let folded: FoldedImages;
  try {
    folded = new FoldedImages(tokenizer, tokenizer.renderMarked(messages, tools));
  } catch (error) {
    note("refused", (error as Error).message);
    return { ...result, inferenceEqual: null };
  }
  const rendered = new Map<string, RenderedText>();
  const render = (count: number, prompt: boolean) => {
    const text = rendered.get(`${count}/${prompt}`) ?? tokenizer.renderMarked(messages.slice(0, count), tools, prompt);
    rendered.set(`${count}/${prompt}`, text);
    return text;
  };
  const production = new InferenceConversation(tokenizer, tools);
  const ids = result.tokenIds;
  let spokenUntil = 0;
  let ended = true;
  const listen = (until: number) => {
    const observed = messages.slice(spokenUntil, until);
    const delta =
      spokenUntil === 0
        ? tokenizer.encodePrompt(messages.slice(0, until), tools)
        : tokenizer.encodeDelta(observed, ended);
    ids.push(...delta);
    compareAt(messages.slice(0, until), () => (spokenUntil === 0 ? "" : tokenizer.renderDelta(observed, ended)));
  };
  const compareAt = (soFar: ChatMessage[], renderDelta: () => string) => {
    const whole = render(soFar.length, true);
    const wholeIds = tokenizer.addBos(tokenizeApart(tokenizer, whole));
    const turn = production.encodeTurn(soFar);
    const context = folded.fold(turn.contextIds, turn.contextMask);
    if (!same(turn.contextIds, wholeIds)) {
      const compared = { tokenize: () => folded.fold(wholeIds).ids, detokenize: folded.show.bind(folded) };
      const { kind } = checkTokenization(context.ids, whole.text, compared, "strict", context.mask);
      if (kind !== "drift") result.inferenceEqual = false;
    }
    if (same(ids, wholeIds)) return;
    const [ours, theirs] = [ids, wholeIds].map((some) => folded.show(folded.fold(some).ids)) as [string, string];
    const shown = tokenizer.render(soFar, tools, true);
    if (ours === theirs) note("drift", showDifference(theirs, ours));
    else note(shown.endsWith(renderDelta()) ? "rewritten" : "moved", showDifference(theirs, ours));
  };
  const sample = (i: number) => {
    const { text: prompt } = render(i, true);
    const { text } = render(i + 1, false);
    if (!text.startsWith(prompt)) {
      note("rewritten", showDifference(text, prompt));
      // The deltas can still be compared, whatever was sampled.
      const said = messages[i]!.content + tokenizer.listEndTexts()[0]!;
      return { tokenIds: tokenizer.tokenizer.tokenize(said), ended: true };
    }
    const said = text.slice(prompt.length);
    const ends = tokenizer.listEndTexts().map((end) => (said.includes(end) ? said.lastIndexOf(end) + end.length : -1));
    const end = Math.max(...ends);
    return { tokenIds: tokenizer.tokenizer.tokenize(end < 0 ? said : said.slice(0, end)), ended: end >= 0 };
  };
  try {
    for (const [i, message] of messages.entries()) {
      if (message.role !== "assistant") continue;
      listen(i);
      const sampled = sample(i);
      ended = sampled.ended;
      ids.push(...sampled.tokenIds);
      production.addSampled(sampled.tokenIds);
      spokenUntil = i + 1;
    }
    if (spokenUntil < messages.length) listen(messages.length);
  } catch (error) {
    note("failed", (error as Error).message);
  }
  return result;
}

/** Tokenizes with the vocabulary itself, including special tokens, but with images separate. */
function tokenizeApart(tokenizer: DeltaTokenizer, whole: RenderedText): Int32Array {
  return joinIds(
    cutAtImages(whole).map((stretch) => ({
      ids: stretch.images.length > 0 ? tokenizer.tokenize(stretch) : tokenizer.tokenizer.tokenize(stretch.text),
    })),
  );
}

function same(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  return a.length === b.length && Array.prototype.every.call(a, (id, i) => id === b[i]);
}

function commonPrefix(a: string, b: string): number {
  let n = 0;
  while (n < a.length && a[n] === b[n]) n++;
  return n;
}

function showDifference(expected: string, received: string): string {
  const at = commonPrefix(expected, received);
  const show = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 30), at + 60));
  return `expected ${show(expected)}, received ${show(received)}`;
}
