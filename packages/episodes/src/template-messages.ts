import type { ChatMessage } from "@cria/core";
import type { AnswerNode } from "./message-graph.js";
import type { TurnForm } from "./turn-form.js";

/** Answers of tools with the names of the calls that they answer: some templates print them. */
export function nameCalls(messages: readonly ChatMessage[], answer: AnswerNode | null): ChatMessage[] {
  const calls = new Map(answer?.said?.message.tool_calls?.map(({ id, function: { name } }) => [id, name]));
  return messages.map((message) => {
    const name = message.role === "tool" ? (calls.get(message.tool_call_id ?? "") ?? message.name) : undefined;
    return name === undefined ? message : { ...message, name };
  });
}

/** An answer as the template is given it: as the text that was sampled, or with its calls and thoughts in fields of their own. */
export function formAnswer({ said }: AnswerNode, form: TurnForm): ChatMessage {
  const { message, text } = said!;
  return form === "structured" || text === undefined ? message : { role: "assistant", content: text };
}
