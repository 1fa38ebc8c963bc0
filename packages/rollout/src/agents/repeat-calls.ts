import type { AnswerNode, RecordedCall } from "@cria/episodes";
import type { ChatSession } from "../chat/chat-session.js";

/**
 * Repeats the calls of a recorded agent without running its code: each at its recorded place in the graph, in
 * recorded order, one at a time.
 */
export async function repeatCalls(session: ChatSession, calls: readonly RecordedCall[]): Promise<void> {
  const answers: AnswerNode[] = [];
  for (const call of calls) answers.push(await session.repeat(answers[call.parent] ?? null, call));
}
