import { isDeepStrictEqual } from "node:util";
import { type ChatMessage, contentText, type RewardFunction } from "cria";
import type { Question } from "./generator.js";

export type Truth = Pick<Question, "calls" | "answer">;

export interface Verdict {
  /** What is wrong with a conversation; null: nothing. */
  mistake: string | null;
  /** The share of right calls before the first mistake, among those that were made and those that were needed. */
  calls: number;
}

export function judge(messages: readonly ChatMessage[], { calls, answer }: Truth): Verdict {
  const turns = messages.filter(({ role }) => role === "assistant").map(({ content }) => contentText(content));
  const made = turns.flatMap((turn) => [...turn.matchAll(/<tool_call>(.*?)<\/tool_call>/gs)].map(([, call]) => call!));
  const mistakes = made.map((text, i) => findCallMistake(readJson(text), calls, i));
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

function findCallMistake(made: ReturnType<typeof readJson>, calls: Truth["calls"], i: number): string | null {
  if (made === undefined) return "broken call";
  if (i >= calls.length) return calls.length === 0 ? "call where none is needed" : "one call too many";
  if (made.name !== calls[i]!.name) return "wrong tool";
  return isDeepStrictEqual(made.arguments, calls[i]!.arguments) ? null : "wrong arguments";
}

function readJson(text: string): { name?: unknown; arguments?: unknown } | undefined {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

/** A final answer has one line, holds the value as a word of its own, and refuses only what no tool can do. */
function says(text: string, answer: string | null): boolean {
  const refuses = /\b(no tool|cannot|can't|unable)\b/i.test(text);
  if (text.trim().includes("\n") || text.length > 200 || refuses !== (answer === null)) return false;
  if (answer === null) return true;
  const escaped = answer.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\w.:@-])${escaped}(?![\\w@-]|[.:]\\w)`, "i").test(text);
}

/**
 * 1 for the right calls with the right arguments, in order, and then the right answer. Calls that were right on the way to something
 * else are worth a little, so that a question of two calls teaches before both succeed; `acc` tells success.
 */
export const score: RewardFunction = (_source, _text, truth, { messages }) => {
  const { mistake, calls } = judge(messages, truth as Truth);
  return { score: mistake === null ? 1 : 0.4 * calls, acc: mistake === null ? 1 : 0 };
};
