import type { ChatMessage } from "@cria/core";
import type { AnswerNode } from "./message-graph.js";
import type { TurnForm } from "./turn-form.js";

/** Adds the names of the answered calls to answers of tools: some templates print them. */
export function nameCalls(messages: readonly ChatMessage[], answer: AnswerNode | null): ChatMessage[] {
  const calls = new Map(answer?.said?.message.tool_calls?.map(({ id, function: { name } }) => [id, name]));
  return messages.map((message) => {
    const name = message.role === "tool" ? (calls.get(message.tool_call_id ?? "") ?? message.name) : undefined;
    return name === undefined ? message : { ...message, name };
  });
}

/** An answer in the form that the template takes: as sampled text, or with calls and thoughts in separate fields. */
export function formAnswer({ said }: AnswerNode, form: TurnForm): ChatMessage {
  const { message, text } = said!;
  return form === "structured" || text === undefined ? message : { role: "assistant", content: text };
}
