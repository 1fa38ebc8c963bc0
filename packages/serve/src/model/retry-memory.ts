import { createHash } from "node:crypto";
import type { ChatAnswer, ChatEvent } from "@cria/rollout";
import type { ChatCall } from "../protocol/protocol.js";

interface Kept {
  answers: readonly ChatAnswer[];
  /** Whether a client has been sent all of it. */
  delivered: boolean;
}

/**
 * The newest answers, for clients that ask again since the first answer did not reach them: they get that one, where an equal
 * question that is no retry gets a sibling.
 */
export class RetryMemory {
  private readonly kept = new Map<string, Kept>();

  constructor(private readonly most: number) {}

  /**
   * @param isRetry whether the client says that it asks again. One that does not say so gets only what nobody has received.
   * @returns undefined where the question has to be answered.
   */
  find(key: string, isRetry: boolean): readonly ChatAnswer[] | undefined {
    const kept = this.kept.get(key);
    return kept && (isRetry || !kept.delivered) ? kept.answers : undefined;
  }

  keep(key: string, answers: readonly ChatAnswer[]): void {
    this.forget(key);
    this.kept.set(key, { answers, delivered: false });
    if (this.kept.size > this.most) this.kept.delete(this.kept.keys().next().value!);
  }

  forget(key: string): void {
    this.kept.delete(key);
  }

  markDelivered(key: string): void {
    const kept = this.kept.get(key);
    if (kept) kept.delivered = true;
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
