import type { ChatAnswer, ChatAnswerMessage } from "@cria/rollout";
import type { AnswerContext } from "../protocol/protocol.js";

/** An answer of two tokens to a prompt of three, two of which were evaluated before. */
export function makeAnswer(message: Partial<ChatAnswerMessage> = {}, more: Partial<ChatAnswer> = {}): ChatAnswer {
  const calls = message.tool_calls ?? [];
  return {
    node: "node-1",
    session: "session-1",
    message: { role: "assistant", content: "", ...message },
    finishReason: calls.length > 0 ? "tool_calls" : "stop",
    promptTokenIds: Int32Array.of(1, 2, 3),
    tokenIds: Int32Array.of(72, 256),
    logprobs: Float32Array.of(-0.5, -0.25),
    usage: { promptTokens: 3, completionTokens: 2, reasoningTokens: 0, reusedTokens: 2 },
    policyVersion: 7,
    ...more,
  };
}

/** The context of a model whose tokens are bytes; 256 is a control token. */
export const testContext: AnswerContext = {
  id: "x1",
  created: 1_700_000_000,
  model: "tiny",
  fingerprint: "fp-test",
  spell: (ids) =>
    Array.from(ids, (id) => {
      const text = id < 128 ? String.fromCharCode(id) : "<|im_end|>";
      return { text, bytes: new TextEncoder().encode(text) };
    }),
};

export const weatherCall = {
  id: "call-1",
  type: "function" as const,
  function: { name: "weather", arguments: '{"city":"Bern"}' },
};

export const weatherParameters = { type: "object", properties: { city: { type: "string" } } };
