import { createHash } from "node:crypto";
import type { ChatAnswer, ChatEvent } from "@cria/rollout";
import type { ChatCall } from "../protocol/protocol.js";

interface Kept {
  key: string;
  answers: readonly ChatAnswer[];
  /** Whether a client has been sent all of it. */
  delivered: boolean;
}

/**
 * The newest answers, for clients that ask again since the first answer did not reach them: they get that one, where an equal
 * question that is no retry gets a sibling.
 */
export class RetryMemory {
  /** The newest stands last. */
  private kept: Kept[] = [];

  constructor(private readonly most: number) {}

  /** What a client that asks again missed: an answer that reached nobody, else the last one. undefined: none was made. */
  find(key: string): readonly ChatAnswer[] | undefined {
    const alike = this.kept.filter((kept) => kept.key === key);
    const missed = alike.find(({ delivered }) => !delivered) ?? alike.at(-1);
    if (!missed) return undefined;
    // Equal questions that were lost together each get an answer.
    this.kept = [...this.kept.filter((kept) => kept !== missed), { ...missed, delivered: true }];
    return missed.answers;
  }

  keep(key: string, answers: readonly ChatAnswer[]): void {
    this.kept.push({ key, answers, delivered: false });
    if (this.kept.length > this.most) this.kept.shift();
  }

  /** From here on a retry is of a new question, not of those that were answered before. */
  forgetDelivered(key: string): void {
    this.kept = this.kept.filter((kept) => kept.key !== key || !kept.delivered);
  }

  markDelivered(answers: readonly ChatAnswer[]): void {
    for (const kept of this.kept) if (kept.answers === answers) kept.delivered = true;
  }
}

/** The same for equal questions. */
export function nameCall({ request, n }: ChatCall): string {
  return createHash("sha256")
    .update(JSON.stringify([request, n]))
    .digest("base64");
}

/** An answer as it would have been streamed, each part whole. */
export function listEvents({ message }: ChatAnswer): ChatEvent[] {
  const { reasoning_content, content, tool_calls = [] } = message;
  return [
    ...(reasoning_content ? [{ type: "reasoning" as const, text: reasoning_content }] : []),
    ...(content === "" ? [] : [{ type: "text" as const, text: content }]),
    ...tool_calls.map((call, index) => ({ type: "tool_call" as const, index, call })),
  ];
}
