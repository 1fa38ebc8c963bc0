import { type ChatMessage, contentText } from "@cria/core";
import type { SanityCheckMode } from "./check-tokenization.js";
import type { DeltaTokenizer } from "./delta-tokenizer.js";
import type { FoldedImages } from "./fold-images.js";
import { type RenderedText, sliceRendered } from "./rendered-text.js";

export interface Mismatch {
  messages: readonly ChatMessage[];
  /** Folded, like `wholeIds`. */
  ids: ArrayLike<number>;
  /** As long as `ids`. */
  mask: ArrayLike<number>;
  wholeIds: Int32Array;
  rendered: RenderedText;
  mode: SanityCheckMode;
  folded: FoldedImages;
}

/** Consecutive tokens that were all sampled, or all observed. */
interface Stretch {
  ids: number[];
  sampled: boolean;
}

/**
 * Explains why the text of a rollout differs from that of its whole conversation, if only the template is the reason;
 * null if something else is wrong. "rewritten": the messages record the sampled text, and between the turns the
 * rendering has exactly the text that the policy saw, each time right after the end of a turn; the template has only
 * added to the turns or removed parts of them. "other_end": the same, and turns end with another end-of-turn token.
 */
export function explainMismatch(tokenizer: DeltaTokenizer, mismatch: Mismatch): "rewritten" | "other_end" | null {
  const { messages, rendered, wholeIds, mode, folded } = mismatch;
  const normalize = mode === "ignore_strippable" ? (text: string) => text.replace(/\s+/g, "") : (text: string) => text;
  const textOf = (ids: ArrayLike<number>) => normalize(folded.detokenize(ids));
  const stretches = splitByMask(mismatch.ids, mismatch.mask);
  const turns = stretches.filter((stretch) => stretch.sampled);
  const spoken = messages.flatMap((message, i) =>
    message.role === "assistant"
      ? [{ message, openings: listOpenings(tokenizer, messages[i - 1]).map(normalize) }]
      : [],
  );
  const recorded = spoken.slice(spoken.length - turns.length);
  if (turns.length === 0 || recorded.length < turns.length) return null;

  const whole = textOf(wholeIds);
  const ends = tokenizer.listPrintedEndTexts().map(normalize);
  let otherEnd = false;
  let turn = -1;
  /** State of the last sampled turn: its text, its end ("" when it was cut), and its place in the rendering. */
  let said = "";
  let ended = "";
  let at = 0;
  for (const [i, stretch] of stretches.entries()) {
    if (stretch.sampled) {
      const last = tokenizer.specialTokens.textOf(stretch.ids.at(-1)!);
      ended = last !== null && tokenizer.listEndTexts().includes(last) ? normalize(last) : "";
      said = textOf(ended === "" ? stretch.ids : stretch.ids.slice(0, -1));
      const { message, openings } = recorded[++turn]!;
      if (!records(message, openings, said, ended !== "", normalize)) return null;
      if (i + 1 < stretches.length) continue;
      // The last turn: the rendering was cut after its end.
      const end = ended === "" ? "" : [ended, ...ends].find((text) => whole.endsWith(text));
      if (end === undefined || !isMadeOf(whole.slice(at, whole.length - end.length), said, message)) return null;
      otherEnd ||= end !== ended;
      continue;
    }
    const { openings } = recorded[turn + 1] ?? { openings: [] };
    const heard = textOf(stretch.ids);
    const found = findHeard(whole, at, heard, openings, turn < 0 ? null : ended, ends);
    if (!found) return null;
    if (turn >= 0 && !isMadeOf(whole.slice(at, found.turnEnd), said, recorded[turn]!.message)) return null;
    // Compares tokens too, if places in the tokens' text are places in the rendering. They are not if whitespace is
    // ignored, or the vocabulary normalizes text.
    if (whole === rendered.text) {
      const seen = sliceRendered(rendered, found.from, found.to);
      const ids = folded.tokenize({ ...seen, text: seen.text + heard.slice(seen.text.length) });
      if (ids.length !== stretch.ids.length || !ids.every((id, k) => id === stretch.ids[k])) return null;
    }
    at = found.to;
    otherEnd ||= found.otherEnd;
  }
  if (stretches.at(-1)!.sampled === false && at !== whole.length) return null;
  return otherEnd ? "other_end" : "rewritten";
}

/**
 * True if a template may have printed this text for a turn: it may add to the text (an empty `<think>` block) or
 * remove parts of it (reasoning), ignoring whitespace; other words are not rewriting. Calls in a message's
 * `tool_calls` are printed in the template's own notation.
 */
function isMadeOf(printed: string, said: string, message: ChatMessage): boolean {
  if (message.tool_calls && message.tool_calls.length > 0) return true;
  const [a, b] = [printed.replace(/\s+/g, ""), said.replace(/\s+/g, "")];
  return a.length > b.length ? isWithin(b, a) : isWithin(a, b);
}

/** True if the characters of `part` occur in `text` in the same order. */
function isWithin(part: string, text: string): boolean {
  let at = 0;
  for (let i = 0; i < text.length && at < part.length; i++) if (text[i] === part[at]) at++;
  return at === part.length;
}

/** Place of a message in the rendering, and the end of the previous turn, before its end-of-turn text. */
interface Found {
  turnEnd: number;
  from: number;
  to: number;
  otherEnd: boolean;
}

/**
 * Finds a message in the rendering, with or without the opening of the next turn: at `at` before the first turn (`end`
 * null), else after the end of a turn, which may differ from the sampled end.
 */
function findHeard(
  whole: string,
  at: number,
  heard: string,
  openings: readonly string[],
  end: string | null,
  ends: readonly string[],
): Found | null {
  const cut = openings.filter((opening) => heard.endsWith(opening));
  const forms = [heard, ...cut.map((opening) => heard.slice(0, -opening.length))];
  for (const form of forms) {
    if (end === null) {
      if (whole.startsWith(form, at)) return { turnEnd: at, from: at, to: at + form.length, otherEnd: false };
      continue;
    }
    for (const text of end === "" ? [""] : [end, ...ends.filter((other) => other !== end)]) {
      const found = whole.indexOf(text + form, at);
      const from = found + text.length;
      if (found >= 0) return { turnEnd: found, from, to: from + form.length, otherEnd: text !== end };
    }
  }
  return null;
}

/**
 * True if a message records the sampled text: exactly for a turn that ended, at least its beginning for one that was
 * stopped.
 */
function records(
  message: ChatMessage,
  openings: readonly string[],
  said: string,
  ended: boolean,
  normalize: (text: string) => string,
): boolean {
  const content = normalize(contentText(message.content ?? ""));
  if (message.tool_calls && message.tool_calls.length > 0) return said.includes(content.trim());
  const begun = openings.filter((opening) => content.startsWith(opening));
  const forms = [content, ...begun.map((opening) => content.slice(opening.length))];
  return forms.some((form) => (ended ? said === form : said.startsWith(form)));
}

/** Openings of the assistant's turn in the generation prompt after this message, if they are not printed later. */
function listOpenings(tokenizer: DeltaTokenizer, before: ChatMessage | undefined): string[] {
  // A template may keep the opening of a turn after a tool until the user speaks again.
  const kinds = before?.role === "tool" ? (["tool", "user"] as const) : (["user"] as const);
  const renderings = kinds.flatMap((after) => [
    () => tokenizer.renderOpening(after),
    () => tokenizer.renderDropped(after),
  ]);
  const openings = renderings.map((render) => {
    try {
      return render();
    } catch {
      // Such a template cannot continue after a turn.
      return "";
    }
  });
  return [...new Set(openings)].filter((opening) => opening !== "");
}

export function splitByMask(ids: ArrayLike<number>, mask: ArrayLike<number>): Stretch[] {
  const stretches: Stretch[] = [];
  for (let i = 0; i < ids.length; i++) {
    const sampled = mask[i] === 1;
    if (stretches.at(-1)?.sampled !== sampled) stretches.push({ ids: [], sampled });
    stretches.at(-1)!.ids.push(ids[i]!);
  }
  return stretches;
}
