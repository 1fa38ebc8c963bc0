import { createHash } from "node:crypto";
import type { ChatAnswer, ChatEvent } from "@cria/rollout";
import type { ChatCall } from "../protocol/protocol.js";

interface Kept {
  key: string;
  answers: readonly ChatAnswer[];
  /** True if a client has received all of it. */
  delivered: boolean;
}

/**
 * The newest answers, for clients that repeat a request because its answer did not reach them. A retry gets the same
 * answer, where an equal new request gets a sibling.
 */
export class RetryMemory {
  /** Oldest first. */
  private kept: Kept[] = [];

  constructor(private readonly most: number) {}

  /** The answer that a retry asks for: one that no client received, else the last one. undefined: there is none. */
  find(key: string): readonly ChatAnswer[] | undefined {
    const alike = this.kept.filter((kept) => kept.key === key);
    const missed = alike.find(({ delivered }) => !delivered) ?? alike.at(-1);
    if (!missed) return undefined;
    // When several equal requests lost their answers, each retry gets another of them.
    this.kept = [...this.kept.filter((kept) => kept !== missed), { ...missed, delivered: true }];
    return missed.answers;
  }

  keep(key: string, answers: readonly ChatAnswer[]): void {
    this.kept.push({ key, answers, delivered: false });
    if (this.kept.length > this.most) this.kept.shift();
  }

  /** Forgets delivered answers: a later retry belongs to a newer request. */
  forgetDelivered(key: string): void {
    this.kept = this.kept.filter((kept) => kept.key !== key || !kept.delivered);
  }

  markDelivered(answers: readonly ChatAnswer[]): void {
    for (const kept of this.kept) if (kept.answers === answers) kept.delivered = true;
  }
}

/** A hash that equal requests share. */
export function nameCall({ request, n }: ChatCall): string {
  return createHash("sha256")
    .update(JSON.stringify([request, n]))
    .digest("base64");
}

/** The events of an answer as a stream would send them, with each part whole. */
export function listEvents({ message }: ChatAnswer): ChatEvent[] {
  const { reasoning_content, content, tool_calls = [] } = message;
  return [
    ...(reasoning_content ? [{ type: "reasoning" as const, text: reasoning_content }] : []),
    ...(content === "" ? [] : [{ type: "text" as const, text: content }]),
    ...tool_calls.map((call, index) => ({ type: "tool_call" as const, index, call })),
  ];
}
