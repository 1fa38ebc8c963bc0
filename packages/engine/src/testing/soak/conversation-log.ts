import type { GenerateResult, SamplingOptions } from "@cria/core";

/** What one request was asked and what came of it. */
export interface Turn {
  delta: readonly number[];
  /** Null for a prefill. */
  request: (SamplingOptions & { maxTokens: number; stopTokens?: number[]; stopStrings?: string[] }) | null;
  tokenIds: Int32Array;
  logprobs: Float32Array;
  finishReason: GenerateResult["finishReason"];
  text: string;
  /** Tokens whose KV was there already; null when the engine does not say (prefill). */
  reused: number | null;
  /** Version of the weights that it was computed with; null when they changed meanwhile. */
  weights: number | null;
}

/** Conversations that forked from one; complete when all of them ended. */
export class FamilyLog {
  readonly members: ConversationLog[] = [];
  /** A member's KV was evaluated again (evicted without room to save it, or flushed): forks may share that one's rounding. */
  recomputed = false;

  /** @param temperature of every request of the family, so that one scoring call covers a conversation. */
  constructor(readonly temperature: number) {}
}

/** The turns of one conversation, those before its fork included. */
export class ConversationLog {
  constructor(
    readonly family: FamilyLog,
    readonly turns: Turn[] = [],
    /** Index of the first turn after each fork on the way here; the turns before the last one are its parent's. */
    readonly forkPoints: readonly number[] = [],
    private length = 0,
  ) {
    family.members.push(this);
  }

  get firstOwnTurn(): number {
    return this.forkPoints.at(-1) ?? 0;
  }

  add(turn: Turn): void {
    // The last sampled token was never evaluated, so one less than all counts as kept.
    if (turn.reused !== null && turn.tokenIds.length > 0 && turn.reused < this.length - 1)
      this.family.recomputed = true;
    this.turns.push(turn);
    this.length += turn.delta.length + turn.tokenIds.length;
  }

  fork(): ConversationLog {
    return new ConversationLog(this.family, [...this.turns], [...this.forkPoints, this.turns.length], this.length);
  }
}
