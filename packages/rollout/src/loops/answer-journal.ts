import { createHash } from "node:crypto";
import { type ChatMessage, contentText, ToolError } from "@cria/core";

/** A conversation's place in the schedule; the journal of a step finds its entries by it. */
export interface JournalPlace {
  uid: string;
  /** Index of the sample within its row. */
  sample: number;
  /** 0, or how often the conversation was sampled again. */
  attempt: number;
}

/** A question to code outside the policy: a tool, an interaction, a judge. */
export interface JournalQuestion {
  kind: "tool" | "tool_score" | "reply" | "interaction_score" | "judgement";
  /** Name of who is asked. */
  name: string;
  /** Number of assistant turns so far. */
  turn: number;
  /** Index of the call among those of its turn; 0 for anything but calls. */
  call: number;
  /** Digest of what the answer depends on; an entry with another digest is not used. */
  asked: string;
  /** True: who is asked keeps a state of the conversation, and is asked again, but the recorded answer counts. */
  keepsState: boolean;
  /** An answer that comes after its abort is not recorded. */
  signal?: AbortSignal;
}

/** Records the answers that one conversation is given, and gives those that an earlier process recorded. */
export interface ConversationJournal {
  /**
   * @param ask asks for the answer: JSON, with byte arrays in it. Its errors are not recorded.
   * @returns the recorded answer to an equal question; else that of `ask`, once it is recorded.
   */
  ask<T>(question: JournalQuestion, ask: () => Promise<T>): Promise<T>;
}

/** Records the answers of a step's conversations. */
export interface AnswerJournal {
  open(place: JournalPlace): ConversationJournal;
}

/** Digest of a conversation so far and of a question about it. */
export function digestQuestion(messages: readonly ChatMessage[], ...about: readonly unknown[]): string {
  const said = messages.map(({ role, content }) => [
    role,
    contentText(content, ({ image }) => ("hash" in image ? image.hash : "image")),
  ]);
  return createHash("sha256")
    .update(JSON.stringify([said, about]))
    .digest("hex")
    .slice(0, 32);
}

type Answer<T> = { value: T } | { failed: Record<"summary" | "code" | "subject", string> & Failure };
type Failure = Partial<Record<"expected" | "received" | "remedy", string>>;

/**
 * Asks through a journal, if there is one; `describe` is called only then. A ToolError is an answer too: it is recorded,
 * and thrown again.
 */
export async function askThrough<T>(
  journal: ConversationJournal | undefined,
  describe: () => JournalQuestion,
  ask: () => Promise<T>,
): Promise<T> {
  if (!journal) return ask();
  const question = describe();
  const answer = await journal.ask<Answer<T>>(question, async () => {
    try {
      return { value: await ask() };
    } catch (error) {
      if (!(error instanceof ToolError) || question.signal?.aborted) throw error;
      return { failed: describeFailure(error) };
    }
  });
  if ("value" in answer) return answer.value;
  const { summary, ...details } = answer.failed;
  throw new ToolError(summary, details);
}

function describeFailure({ summary, code, subject, expected, received, remedy }: ToolError) {
  return { summary, code, subject, expected, received, remedy };
}
