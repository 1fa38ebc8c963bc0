import type { AnswerNode, RecordedCall } from "@cria/episodes";
import type { ChatSession } from "../chat/chat-session.js";

/**
 * Makes the calls of a recorded agent again, without its code: each at its recorded place in the graph, one after the other, in the
 * order of the record.
 */
export async function repeatCalls(session: ChatSession, calls: readonly RecordedCall[]): Promise<void> {
  const answers: AnswerNode[] = [];
  for (const call of calls) answers.push(await session.repeat(answers[call.parent] ?? null, call));
}
