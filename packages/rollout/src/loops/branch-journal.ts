import { isDeepStrictEqual } from "node:util";
import { ToolError } from "@cria/core";
import type { ConversationJournal, JournalQuestion } from "./answer-journal.js";
import type { BranchPoint, GivenAnswer } from "./branch-point.js";

/** Identifies a question among those of one conversation. */
function nameQuestion({ kind, name, turn, call }: JournalQuestion): string {
  return JSON.stringify([kind, name, turn, call]);
}

/**
 * The journal of a conversation of a tree. It keeps what the conversation is answered, for those that go on from it. In
 * the turns that the conversation took over, the recorded answers count. A tool or an interaction that keeps a state,
 * and whose state was not restored, is asked again, so that it comes to that state: it has to give the same answer.
 */
export class BranchJournal implements ConversationJournal {
  private readonly given: Map<string, GivenAnswer>;

  /**
   * @param from where the conversation goes on; null: it begins at the prompt.
   * @param journal records new answers; left out: nothing does.
   */
  constructor(
    private readonly from: BranchPoint | null,
    private readonly journal: ConversationJournal | undefined,
  ) {
    this.given = new Map(from?.answers);
  }

  /** Answers so far, those that were taken over included. */
  get answers(): ReadonlyMap<string, GivenAnswer> {
    return this.given;
  }

  /** @throws ToolError "rollout/other-answer" if a tool or an interaction answers a repeated question otherwise. */
  async ask<T>(question: JournalQuestion, ask: () => Promise<T>): Promise<T> {
    if (this.from !== null && question.turn <= this.from.turns) return this.repeat(this.from, question, ask);
    const answer = await (this.journal ? this.journal.ask(question, ask) : ask());
    this.given.set(nameQuestion(question), { asked: question.asked, answer });
    return answer;
  }

  private async repeat<T>(from: BranchPoint, question: JournalQuestion, ask: () => Promise<T>): Promise<T> {
    const known = from.answers.get(nameQuestion(question));
    if (known?.asked !== question.asked) throw makeOtherAnswerError(question, "another question was asked");
    const { kind, name, keepsState } = question;
    if (!keepsState || (kind === "tool" && from.tools.snapshots.has(name))) return known.answer as T;
    const again = await ask();
    if (!isDeepStrictEqual(pickAnswer(again), pickAnswer(known.answer)))
      throw makeOtherAnswerError(question, "it answered otherwise");
    return known.answer as T;
  }
}

/** Copies an answer without the fields of metrics, which may hold times. */
function pickAnswer(answer: unknown): unknown {
  const { metrics: _, data: __, ...rest } = answer as Record<string, unknown>;
  for (const key of ["value", "outcome"]) if (isRecord(rest[key])) rest[key] = pickAnswer(rest[key]);
  return rest;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function makeOtherAnswerError({ kind, name, turn }: JournalQuestion, received: string): ToolError {
  const who = kind === "tool" ? `tool "${name}"` : `interaction "${name}"`;
  return new ToolError("cannot be brought to the state of an earlier turn", {
    code: "rollout/other-answer",
    subject: `${who} in turn ${turn} of a conversation that branches (rollout.tree)`,
    expected: "the same answer to the same call",
    received,
    remedy:
      kind === "tool"
        ? "give it snapshot() and restore(), or let its answers follow from the row and the calls alone"
        : "let its replies follow from the row, the conversation and the seed alone",
  });
}
