import type { GenerateOptions, GenerateResult, GenerateStats, PolicySequence } from "@cria/core";

const noStats: GenerateStats = {
  prefillTokens: 0,
  reusedTokens: 0,
  decodeTokens: 0,
  queueMs: 0,
  prefillMs: 0,
  decodeMs: 0,
};

/**
 * The sequence of a conversation of a tree: gives the turns that the conversation took over, whose tokens the given
 * sequence already holds, then samples.
 */
export class BranchSequence implements PolicySequence {
  private turn = 0;

  /**
   * @param known turns to give.
   * @param onTurn called with each turn that was sampled.
   */
  constructor(
    private readonly sequence: PolicySequence,
    private readonly known: readonly GenerateResult[],
    private readonly onTurn: (turn: GenerateResult) => void,
  ) {}

  get tokenCount(): number {
    return this.sequence.tokenCount;
  }

  async generate(delta: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult> {
    const known = this.known[this.turn++];
    if (known) return { ...known, stats: noStats };
    const turn = await this.sequence.generate(delta, options);
    this.onTurn(turn);
    return turn;
  }

  prefill(delta: ArrayLike<number>, options?: { signal?: AbortSignal }): Promise<void> {
    return this.sequence.prefill(delta, options);
  }

  fork(): PolicySequence {
    return this.sequence.fork();
  }

  dispose(): void {
    this.sequence.dispose();
  }
}
