import type { ChatMessage, ToolSchema } from "@cria/core";
import { sampleTool, user } from "./sample-text.js";

const says = (content: string, reasoning_content?: string): ChatMessage => ({
  role: "assistant",
  content,
  ...(reasoning_content === undefined ? {} : { reasoning_content }),
});

/** A call of the calculator; ids have the nine characters that Mistral's templates want. */
const calls = (content: string, id: string, expression: string): ChatMessage => ({
  ...says(content),
  tool_calls: [{ id, type: "function", function: { name: "calculator", arguments: { expression } } }],
});

const answers = (id: string, content: string): ChatMessage => ({
  role: "tool",
  name: "calculator",
  tool_call_id: id,
  content,
});

const system: ChatMessage = { role: "system", content: "You are terse." };
const manyTurns = Array.from({ length: 20 }, (_, i) => [user(`${i} + 1?`), says(String(i + 1))]).flat();

/** Conversations like those of rollouts: tools, thoughts, many turns, and texts that are hard for a tokenizer. */
export const sampleConversations: Readonly<Record<string, { messages: ChatMessage[]; tools: ToolSchema[] }>> = {
  plain: { messages: [user("Hello"), says("Hi. What is it?"), user("Nothing."), says("Good.")], tools: [] },
  system: { messages: [system, user("1 + 1?"), says("2"), user("And 2 + 2?"), says("4")], tools: [] },
  "a call": {
    messages: [
      system,
      user("What is 12 * 12?"),
      calls("", "call00001", "12 * 12"),
      answers("call00001", "144"),
      says("144"),
    ],
    tools: [sampleTool],
  },
  "text and a call": {
    messages: [
      system,
      user("7 * 6?"),
      calls("I compute it.", "call00001", "7 * 6"),
      answers("call00001", "42"),
      says("42"),
    ],
    tools: [sampleTool],
  },
  "calls in two rounds": {
    messages: [
      system,
      user("Add 1 and 2, then double it."),
      calls("", "call00001", "1 + 2"),
      answers("call00001", "3"),
      calls("", "call00002", "3 * 2"),
      answers("call00002", "6"),
      says("6"),
      user("Thanks."),
      says("Gladly."),
    ],
    tools: [sampleTool],
  },
  thoughts: {
    messages: [
      system,
      user("Is 7 prime?"),
      says("Yes.", "It has no divisor."),
      user("And 9?"),
      says("No.", "It is 3 * 3."),
    ],
    tools: [],
  },
  "20 turns": { messages: manyTurns, tools: [] },
  "hard texts": {
    messages: [user("  Größe 🦙\n\n"), says("naïve e\u0301\n\tラマ"), user("<|im_end|> </s> [INST]"), says("x = 1\n")],
    tools: [],
  },
};
