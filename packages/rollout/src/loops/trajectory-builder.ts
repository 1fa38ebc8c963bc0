import type { GenerateResult, TurnRecord } from "@cria/core";
import { now } from "./state-log.js";

/** A reward earned by a turn; where it lands is known at the end, since later turns may rewrite earlier ones. */
export interface EarnedReward {
  value: number;
  /** Index of the turn. */
  turn: number;
}

/** Collects a conversation token by token, with masks and logprobs kept in step, and its turns. */
export class TrajectoryBuilder {
  private readonly ids: number[];
  private readonly mask: number[];
  private readonly logprobs: number[];
  private promptLength: number;
  readonly turns: TurnRecord[] = [];

  /** @param budget most tokens after the prompt. */
  constructor(
    promptIds: ArrayLike<number>,
    private readonly budget: number,
  ) {
    this.ids = Array.from(promptIds);
    this.promptLength = this.ids.length;
    this.mask = new Array(this.promptLength).fill(0);
    this.logprobs = new Array(this.promptLength).fill(0);
  }

  /** Tokens so far, prompt included. */
  get tokenIds(): readonly number[] {
    return this.ids;
  }

  /** 1 where the policy sampled, whether it is trained on or not; as long as `tokenIds`. */
  get sampledMask(): Uint8Array {
    const sampled = new Uint8Array(this.ids.length);
    for (const turn of this.turns) if (turn.role === "assistant") sampled.fill(1, turn.start, turn.end);
    return sampled;
  }

  get remaining(): number {
    return this.budget - (this.ids.length - this.promptLength);
  }

  /** Index of the present turn. */
  get turn(): number {
    return this.turns.length - 1;
  }

  /** Adds an assistant's turn. `untrained` is a stretch of it, counted from its first token, that gets mask 0. */
  addSampled(
    result: GenerateResult,
    startedAt: number,
    toolCalls?: TurnRecord["toolCalls"],
    trainOnCalls = true,
  ): void {
    const start = this.ids.length;
    for (let i = 0; i < result.tokenIds.length; i++) {
      const isCall = toolCalls !== undefined && i >= toolCalls.start && i < toolCalls.end;
      const trained = trainOnCalls || !isCall;
      this.push(result.tokenIds[i]!, trained ? 1 : 0, trained ? result.logprobs[i]! : 0);
    }
    const placed = toolCalls && { ...toolCalls, start: start + toolCalls.start, end: start + toolCalls.end };
    this.endTurn({ role: "assistant", start, startedAt, ...(placed ? { toolCalls: placed } : {}) });
  }

  /** @param failures of a tools' turn, see TurnRecord. */
  addObserved(
    role: "tool" | "user",
    ids: ArrayLike<number>,
    startedAt: number,
    failures?: TurnRecord["failures"],
  ): void {
    const start = this.ids.length;
    for (let i = 0; i < ids.length; i++) this.push(ids[i]!, 0, 0);
    // A conversation that was rewritten may have become shorter than its prompt was.
    this.promptLength = Math.min(this.promptLength, this.ids.length);
    this.endTurn({ role, start, startedAt, ...(failures ? { failures } : {}) });
  }

  /** Forgets all tokens from `start` (prompt included) on, for others to take their place. Returns how many were sampled. */
  cutFrom(start: number): number {
    const sampled = this.mask.slice(start).reduce((sum, bit) => sum + bit, 0);
    for (const list of [this.ids, this.mask, this.logprobs]) list.length = start;
    for (const turn of this.turns) {
      turn.start = Math.min(turn.start, start);
      turn.end = Math.min(turn.end, start);
      if (turn.toolCalls && turn.toolCalls.end > start) turn.toolCalls = { ...turn.toolCalls, start, end: start };
    }
    return sampled;
  }

  /** Takes every token out of training. */
  clearMask(): void {
    this.mask.fill(0);
    this.logprobs.fill(0);
  }

  /**
   * Where rewards land: at the last trained token of their turn, or the nearest one. None where nothing is trained on: no
   * step can have earned anything.
   */
  place(rewards: readonly EarnedReward[]): { value: number; tokenIndex: number }[] {
    const first = this.mask.indexOf(1);
    if (first < 0) return [];
    return rewards.map(({ value, turn }) => {
      const end = this.turns[turn]!.end;
      const before = end > 0 ? this.mask.lastIndexOf(1, end - 1) : -1;
      return { value, tokenIndex: before >= 0 ? before : first };
    });
  }

  build(): {
    tokenIds: Int32Array;
    promptLength: number;
    responseMask: Uint8Array;
    rolloutLogprobs: Float32Array;
    turns: TurnRecord[];
  } {
    return {
      tokenIds: Int32Array.from(this.ids),
      promptLength: this.promptLength,
      responseMask: Uint8Array.from(this.mask),
      rolloutLogprobs: Float32Array.from(this.logprobs),
      turns: this.turns,
    };
  }

  private push(id: number, mask: 0 | 1, logprob: number): void {
    this.ids.push(id);
    this.mask.push(mask);
    this.logprobs.push(logprob);
  }

  private endTurn(turn: Omit<TurnRecord, "end" | "endedAt">): void {
    this.turns.push({ ...turn, end: this.ids.length, endedAt: now() });
  }
}
