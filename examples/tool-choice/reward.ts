import { isDeepStrictEqual } from "node:util";
import { type ChatMessage, contentText, type RewardFunction } from "cria";
import type { Question } from "./generator.js";

export type Truth = Pick<Question, "calls" | "answer">;

/** What is wrong with a conversation; null: nothing. */
export function findMistake(messages: readonly ChatMessage[], { calls, answer }: Truth): string | null {
  const turns = messages.filter(({ role }) => role === "assistant").map(({ content }) => contentText(content));
  const made = turns.flatMap((turn) => [...turn.matchAll(/<tool_call>(.*?)<\/tool_call>/gs)].map(([, call]) => call!));
  for (const [i, text] of made.entries()) {
    const call = readJson(text);
    if (call === undefined) return "broken call";
    if (i >= calls.length) return calls.length === 0 ? "call where none is needed" : "one call too many";
    if (call.name !== calls[i]!.name) return "wrong tool";
    if (!isDeepStrictEqual(call.arguments, calls[i]!.arguments)) return "wrong arguments";
  }
  if (made.length < calls.length) return made.length === 0 ? "no call" : "missing second call";
  const said = turns.at(-1)!;
  if (said.includes("tool_call>")) return "no final answer";
  return says(said, answer) ? null : "wrong answer";
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

/** 1 for the right calls with the right arguments, in order, and then the right answer. */
export const score: RewardFunction = (_source, _text, truth, { messages }) =>
  findMistake(messages, truth as Truth) === null ? 1 : 0;
