import type { ChatMessage, ToolSchema } from "@cria/core";

export interface Conversation {
  messages: ChatMessage[];
  tools: ToolSchema[];
}

const calculator: ToolSchema = {
  type: "function",
  function: {
    name: "calculator",
    description: "Evaluates an arithmetic expression.",
    parameters: {
      type: "object",
      properties: { expression: { type: "string", description: 'For example "2 * (3 + 4)".' } },
      required: ["expression"],
    },
  },
};
const search: ToolSchema = {
  type: "function",
  function: {
    name: "search",
    description: "Finds documents.",
    parameters: {
      type: "object",
      properties: {
        query: { type: "string", description: "What to look for." },
        filters: {
          type: "object",
          description: "Limits.",
          properties: { year: { type: "integer", description: "Year." } },
        },
      },
      required: ["query"],
    },
  },
};

const system = (content = "You are terse."): ChatMessage => ({ role: "system", content });
const user = (content: string): ChatMessage => ({ role: "user", content });
const says = (content: string, reasoning_content?: string): ChatMessage => ({
  role: "assistant",
  content,
  ...(reasoning_content === undefined ? {} : { reasoning_content }),
});

type Call = [id: string, name: string, args: Record<string, unknown>];

const calls = (content: string, list: Call[], reasoning_content?: string): ChatMessage => ({
  ...says(content, reasoning_content),
  tool_calls: list.map(([id, name, args]) => ({ id, type: "function", function: { name, arguments: args } })),
});
const answers = (id: string, name: string, content: string): ChatMessage => ({
  role: "tool",
  name,
  tool_call_id: id,
  content,
});

const tools = [calculator, search];

/**
 * Typical conversations of rollouts and data sets, one difficulty each. Call ids have the nine characters that Mistral
 * requires.
 */
export const conversations: Record<string, Conversation> = {
  plain: {
    messages: [user("Hello"), says("Hi. What is it?"), user("Nothing."), says("Good.")],
    tools: [],
  },
  system: {
    messages: [system(), user("1 + 1?"), says("2"), user("And 2 + 2?"), says("4"), user("Thanks.")],
    tools: [],
  },
  "one call": {
    messages: [
      system(),
      user("What is 12 * 12?"),
      calls("", [["call00001", "calculator", { expression: "12 * 12" }]]),
      answers("call00001", "calculator", "144"),
      says("It is 144."),
    ],
    tools,
  },
  "text and call": {
    messages: [
      system(),
      user("What is 7 * 6?"),
      calls("I compute it.", [["call00001", "calculator", { expression: "7 * 6" }]]),
      answers("call00001", "calculator", "42"),
      says("42"),
    ],
    tools,
  },
  "several calls": {
    messages: [
      system(),
      user("Compute 1 + 1, and find llamas."),
      calls("", [
        ["call00001", "calculator", { expression: "1 + 1" }],
        ["call00002", "search", { query: "llamas", filters: { year: 2024 } }],
      ]),
      answers("call00001", "calculator", "2"),
      answers("call00002", "search", '{"hits": [{"title": "Llamas", "score": 0.5}]}'),
      says("2, and one document."),
    ],
    tools,
  },
  "calls without ids": {
    messages: [
      system(),
      user("Compute 2 + 2, and find alpacas."),
      {
        role: "assistant",
        content: "",
        tool_calls: [
          { function: { name: "calculator", arguments: { expression: "2 + 2" } } },
          { function: { name: "search", arguments: { query: "alpacas" } } },
        ],
      },
      { role: "tool", name: "calculator", content: "4" },
      { role: "tool", name: "search", content: "[]" },
      says("4, and nothing."),
    ],
    tools,
  },
  "rounds of calls": {
    messages: [
      system(),
      user("Add 1 and 2, then double it."),
      calls("", [["call00001", "calculator", { expression: "1 + 2" }]]),
      answers("call00001", "calculator", "3"),
      calls("", [["call00002", "calculator", { expression: "3 * 2" }]]),
      answers("call00002", "calculator", "6"),
      says("6"),
      user("Halve it."),
      calls("", [["call00003", "calculator", { expression: "6 / 2" }]]),
      answers("call00003", "calculator", "3"),
      says("3"),
    ],
    tools,
  },
  reasoning: {
    messages: [
      system(),
      user("Is 7 prime?"),
      says("Yes.", "7 has no divisor but 1 and 7."),
      user("And 9?"),
      says("No.", "9 is 3 * 3."),
    ],
    tools: [],
  },
  "reasoning and calls": {
    messages: [
      system(),
      user("What is 99 * 99?"),
      calls("", [["call00001", "calculator", { expression: "99 * 99" }]], "Better to compute it."),
      answers("call00001", "calculator", "9801"),
      says("9801", "The tool says 9801."),
    ],
    tools,
  },
  "reasoning as text": {
    messages: [
      system(),
      user("Is 7 prime?"),
      says("<think>\n7 has no divisor.\n</think>\n\nYes."),
      user("And 9?"),
      says("<think>\n9 is 3 * 3.\n</think>\n\nNo."),
    ],
    tools: [],
  },
  "calls as text": {
    messages: [
      system(),
      user("What is 5 * 5?"),
      says('<tool_call>\n{"name": "calculator", "arguments": {"expression": "5 * 5"}}\n</tool_call>'),
      answers("call00001", "calculator", "25"),
      says("25"),
    ],
    tools,
  },
  unicode: {
    messages: [
      system("Réponds brièvement. 简短回答。"),
      user("Was heißt „Lama“ auf Japanisch? 🦙👩‍👩‍👧"),
      calls("", [["call00001", "search", { query: "ラマ 🦙 ‮x‬" }]]),
      answers("call00001", "search", "ラマ — llama\r\n\tnaïve e\u0301 \u{1F1EB}\u{1F1F7}"),
      says("ラマです 🦙。"),
    ],
    tools,
  },
  empty: {
    messages: [
      system(""),
      user(""),
      calls("", [["call00001", "calculator", {}]]),
      answers("call00001", "calculator", ""),
      says(""),
    ],
    tools,
  },
  whitespace: {
    messages: [user("  two spaces\n\n"), says("  kept?\n"), user("\n\ncode:\n\n    x = 1\n"), says("\tyes ")],
    tools: [],
  },
};
