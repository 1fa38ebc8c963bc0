import { isDeepStrictEqual } from "node:util";
import type { ChatMessage } from "cria";
import { type Call, readCalls, readTurns } from "./calls.js";

/** The ground truth of a row. */
export interface Truth {
  /** Required calls, in this order. */
  calls: Call[];
  /** Required text of the final answer; null: that no tool can do it. */
  answer: string | null;
}

export interface Verdict {
  /** The mistake of a conversation; null: none. */
  mistake: string | null;
  /** The share of right calls before the first mistake, among those that were made and those that were needed. */
  calls: number;
}

/** Looks for the first mistake of a conversation: in its calls, then in its final answer. */
export function judge(messages: readonly ChatMessage[], { calls, answer }: Truth): Verdict {
  const turns = readTurns(messages);
  const made = turns.flatMap(readCalls);
  const mistakes = made.map((call, i) => findCallMistake(call, calls, i));
  const right = mistakes.findIndex((mistake) => mistake !== null);
  const verdict = (mistake: string | null): Verdict => ({
    mistake,
    calls: (right < 0 ? made.length : right) / Math.max(1, made.length, calls.length),
  });
  if (right >= 0) return verdict(mistakes[right]!);
  if (made.length < calls.length) return verdict(made.length === 0 ? "no call" : "missing second call");
  const said = turns.at(-1)!;
  if (said.includes("tool_call>")) return verdict("no final answer");
  return verdict(says(said, answer) ? null : "wrong answer");
}

function findCallMistake(made: ReturnType<typeof readCalls>[number], calls: Truth["calls"], i: number): string | null {
  if (made === undefined) return "broken call";
  if (i >= calls.length) return calls.length === 0 ? "call where none is needed" : "one call too many";
  if (made.name !== calls[i]!.name) return "wrong tool";
  return isDeepStrictEqual(made.arguments, calls[i]!.arguments) ? null : "wrong arguments";
}

/**
 * A final answer has one line, contains the value as a separate word, and refuses only requests that no tool can do.
 */
function says(text: string, answer: string | null): boolean {
  const refuses = /\b(no tool|cannot|can't|unable)\b/i.test(text);
  if (text.trim().includes("\n") || text.length > 200 || refuses !== (answer === null)) return false;
  if (answer === null) return true;
  const escaped = answer.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\w.:@-])${escaped}(?![\\w@-]|[.:]\\w)`, "i").test(text);
}
