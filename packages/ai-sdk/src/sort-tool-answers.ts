import type { ChatMessage } from "@cria/core";

/** Sorts answers of parallel calls, which may have come in any order, into the order of the calls. */
export function sortToolAnswers(messages: readonly ChatMessage[]): ChatMessage[] {
  const sorted: ChatMessage[] = [];
  let order = new Map<string | undefined, number>();
  let answers: ChatMessage[] = [];
  const flush = () => {
    const place = ({ tool_call_id }: ChatMessage) => order.get(tool_call_id) ?? order.size;
    sorted.push(...answers.sort((a, b) => place(a) - place(b)));
    answers = [];
  };
  for (const message of messages) {
    if (message.role === "tool") {
      answers.push(message);
      continue;
    }
    flush();
    sorted.push(message);
    if (message.role === "assistant") order = new Map((message.tool_calls ?? []).map(({ id }, i) => [id, i]));
  }
  flush();
  return sorted;
}
