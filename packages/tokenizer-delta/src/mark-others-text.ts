import type { ChatMessage } from "@cria/core";
import { cutAtMarks } from "./image-marks.js";
import { makeMark } from "./make-mark.js";
import { mapTexts } from "./map-texts.js";
import type { SpecialTokens } from "./special-tokens.js";

/**
 * Roles that speak for the model's owner or the model itself. All others are users, tools and any other role in a row.
 */
const ownRoles = ["assistant", "system", "developer"];

/**
 * Places in a rendering where users and tools have spelled control tokens (see `RenderedText.plainAt`); null when they
 * cannot be determined. A random word is put into each of these control tokens, the messages are rendered again, and
 * the word's places in the output are the result. So it does not matter how the template trims, escapes, moves or
 * repeats the text. Messages that spell no control token need no second rendering.
 * @param text output of `render` for `messages`.
 */
export function findPlainPlaces(
  messages: readonly ChatMessage[],
  text: string,
  render: (messages: readonly ChatMessage[]) => string,
  specialTokens: SpecialTokens,
): number[] | null {
  const mark = makeMark();
  const marked = markMessages(messages, mark, specialTokens);
  if (!marked) return [];
  let parts: string[];
  try {
    parts = render(marked).split(mark);
  } catch {
    return null;
  }
  if (parts.join("") !== text) return null;
  const places: number[] = [];
  let at = 0;
  for (const part of parts.slice(0, -1)) {
    at += part.length;
    places.push(at);
  }
  return places;
}

/** The messages with the mark inside each control token that others spell; null when there is none. */
function markMessages(
  messages: readonly ChatMessage[],
  mark: string,
  specialTokens: SpecialTokens,
): ChatMessage[] | null {
  const replaced = new Map<string, string>();
  const markText = (text: string) => {
    // Handles each part between images separately: a template that prints images elsewhere joins the texts next to
    // them.
    const places = cutAtMarks(text).flatMap((cut) =>
      cut.hash === null ? specialTokens.listControlPlaces(cut.text).map((place) => cut.from + place) : [],
    );
    if (places.length === 0) return text;
    const marked = [0, ...places].map((from, i) => text.slice(from, places[i])).join(mark);
    replaced.set(text, marked);
    return marked;
  };
  const others = messages.map((message) => {
    if (ownRoles.includes(message.role)) return message;
    const { role, ...said } = message;
    return { role, ...(mapTexts(said, markText) as Omit<ChatMessage, "role">) };
  });
  if (replaced.size === 0) return null;
  // A call keeps the id that its answer refers to.
  return others.map((message) => {
    if (message.role !== "assistant" || !message.tool_calls) return message;
    const tool_calls = message.tool_calls.map((call) => ({ ...call, ...withId(replaced.get(call.id ?? "")) }));
    return { ...message, tool_calls };
  });
}

function withId(id: string | undefined): { id?: string } {
  return id === undefined ? {} : { id };
}
