import type { ChatMessage, ToolSchema } from "@cria/core";

export const searchTool: ToolSchema = {
  type: "function",
  function: {
    name: "search",
    description: "Finds documents.",
    parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
  },
};

const words = "the llama walks over a high plain and carries 42 sacks of maize, salt or wool to market".split(" ");

/** Prose of about this many tokens, another one for each seed. */
function writeProse(tokens: number, seed: number): string {
  let state = seed * 2654435761 + 1;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return words[state % words.length]!;
  };
  return Array.from({ length: tokens }, next).join(" ");
}

export function writeToolAnswer(tokens: number, seed: number): ChatMessage {
  return {
    role: "tool",
    name: "search",
    tool_call_id: `call${String(seed).padStart(5, "0")}`,
    content: writeProse(tokens, seed),
  };
}

/** A search agent's conversation of about `tokens` tokens that ends with the assistant's call. */
export function writeConversation(tokens: number): ChatMessage[] {
  const messages: ChatMessage[] = [
    { role: "system", content: "You search, then you answer." },
    { role: "user", content: "Where do llamas walk?" },
  ];
  const call = (seed: number): ChatMessage => ({
    role: "assistant",
    content: writeProse(20, seed + 500_000),
    tool_calls: [
      {
        id: `call${String(seed).padStart(5, "0")}`,
        type: "function",
        function: { name: "search", arguments: { query: writeProse(5, seed + 700_000) } },
      },
    ],
  });
  // A round is about 60 tokens of call and 210 of answer.
  const rounds = Math.max(1, Math.round((tokens - 250) / 290));
  for (let i = 0; i < rounds; i++) messages.push(call(i), writeToolAnswer(200, i));
  messages.push(call(rounds));
  return messages;
}
