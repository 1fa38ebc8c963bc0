import type { ChatMessage, Trajectory } from "@cria/core";
import { TokenTexts } from "@cria/records/internal";

/** The parts of a trajectory that tell which tokens tools wrote. */
export type ObservedTrajectory = Pick<Trajectory, "tokenIds" | "segments"> &
  Partial<Pick<Trajectory, "messages" | "timeline">>;

/**
 * Marks the tokens of tools' answers after the prompt: their own text, as the chat template shows it, raw or as JSON.
 * Tokens of the template around it, tokens that hold parts of both, and answers that the template shows otherwise have
 * 0. So have all tokens of a trajectory without messages or recorded turns.
 * @param texts texts of tokens that are known already.
 * @returns 0 or 1 for each token of the trajectory.
 */
export function markObservations(
  { tokenIds, segments, messages = [], timeline }: ObservedTrajectory,
  detokenize: (tokenIds: ArrayLike<number>) => string,
  texts = new TokenTexts(detokenize),
): Uint8Array {
  const marks = new Uint8Array(tokenIds.length);
  const turns = [...(timeline?.turns ?? [])].sort((a, b) => b.start - a.start);
  for (const { start, end, messages: own } of segments ?? [{ start: 0, end: tokenIds.length, messages }]) {
    const answers = own.filter(({ role }) => role === "tool").map(readTexts);
    // A prompt may show tools' answers too: the turns' own are the last ones.
    for (const turn of turns) {
      if (turn.role !== "tool" || turn.start < start || turn.end > end || turn.end === turn.start) continue;
      const ids = tokenIds.subarray(turn.start, turn.end);
      const text = detokenize(ids);
      const ends = texts.findEnds(ids, text);
      // Turns of agents do not record their number of answers: all that the text shows are taken.
      const count = turn.failures?.length;
      for (const { from, to } of takePlaces(answers, text, count))
        ends?.forEach((tokenEnd, t) => {
          const tokenStart = t === 0 ? 0 : ends[t - 1]!;
          if (tokenStart >= from && tokenEnd <= to && tokenEnd > tokenStart) marks[turn.start + t] = 1;
        });
    }
  }
  return marks;
}

/**
 * Takes the last answers, which are those of the last turn, and finds their texts in the turn's text.
 * @param count number of the turn's answers; absent: unknown.
 */
function takePlaces(answers: string[][], text: string, count: number | undefined): Place[] {
  const places: Place[] = [];
  // From the last to the first: names and ids of calls stand before an answer's text.
  let before = text.length;
  const first = count === undefined ? 0 : Math.max(0, answers.length - count);
  let left = count === undefined ? answers.length : first;
  for (let k = answers.length - 1; k >= first; k--) {
    const found = findTexts(text, answers[k]!, before);
    if (!found) continue;
    before = found[0]!.from;
    places.push(...found);
    if (count === undefined) left = k;
  }
  answers.length = left;
  return places;
}

/** The texts of a message; images are left out. */
function readTexts({ content }: ChatMessage): string[] {
  if (typeof content === "string") return [content];
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []));
}

interface Place {
  from: number;
  to: number;
}

/** Places of an answer's texts, one after the other, before a character of the turn's text; null: not shown so. */
function findTexts(text: string, parts: readonly string[], before: number): Place[] | null {
  const places: Place[] = [];
  for (const part of [...parts].reverse()) {
    const trimmed = part.trim();
    if (trimmed === "") continue;
    const place = [part, trimmed, JSON.stringify(trimmed).slice(1, -1)]
      .map((form) => ({ from: before < form.length ? -1 : text.lastIndexOf(form, before - form.length), form }))
      .find(({ from }) => from >= 0);
    if (!place) return null;
    before = place.from;
    places.unshift({ from: place.from, to: place.from + place.form.length });
  }
  return places.length > 0 ? places : null;
}
