import {
  type GenerateOptions,
  type GenerateResult,
  hashSeed,
  type PolicyEngine,
  type PolicySequence,
} from "@cria/core";

/** A deviation of a replayed conversation from its record. */
export interface Change {
  /** The assistant's turn, from 1, and the number of its sampled tokens to keep. */
  turn: number;
  keep: number;
  /** Next token; null: it is sampled, too. "stop": the conversation ends there, as aborted. */
  next: number | null | "stop";
  /** Seed for sampling from there on. */
  seed: number;
  /** Called with each new piece of the policy's text from there on. */
  onText?: (text: string) => void;
}

/**
 * Sequences of one replayed conversation. Turns before the change are sampled again, with equal bits. In the changed
 * turn the first `keep` tokens are, then the change's token follows, and later tokens are drawn with its seed. Stop
 * strings are searched for from the change on.
 */
export class Steering {
  private turn = 0;

  constructor(
    private readonly engine: Pick<PolicyEngine, "detokenize" | "info">,
    private readonly change: Change | null,
  ) {}

  steer = (sequence: PolicySequence): PolicySequence => new SteeredSequence(sequence, this);

  generate(sequence: PolicySequence, delta: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult> {
    const { change } = this;
    this.turn++;
    if (!change || this.turn < change.turn) return sequence.generate(delta, options);
    if (this.turn === change.turn) return this.generateChanged(sequence, delta, options, change);
    const seed = hashSeed(change.seed, this.turn);
    return sequence.generate(delta, { ...options, seed, onText: change.onText });
  }

  private async generateChanged(
    sequence: PolicySequence,
    delta: ArrayLike<number>,
    options: GenerateOptions,
    { keep, next, seed, onText }: Change,
  ): Promise<GenerateResult> {
    const kept = keep > 0 ? await sequence.generate(delta, { ...options, maxTokens: keep }) : null;
    if (kept && (kept.finishReason === "aborted" || kept.tokenIds.length < keep)) return kept;
    if (next === "stop") return { ...(kept ?? emptyResult), finishReason: "aborted" };
    const before = kept ? [] : Array.from(delta);
    const room = options.maxTokens - keep;
    if (next === null)
      return this.join([kept, await sequence.generate(before, { ...options, maxTokens: room, seed, onText })]);
    const put: GenerateResult = { ...emptyResult, tokenIds: Int32Array.of(next), logprobs: Float32Array.of(0) };
    const isEnd = (options.stopTokens ?? this.engine.info.endOfGenerationTokens).includes(next);
    if (!isEnd) onText?.(this.engine.detokenize([next]));
    if (isEnd || room === 1) {
      await sequence.prefill([...before, next], { signal: options.signal });
      return this.join([kept, { ...put, finishReason: isEnd ? "stop" : "length" }]);
    }
    const rest = await sequence.generate([...before, next], { ...options, maxTokens: room - 1, seed, onText });
    return this.join([kept, put, rest]);
  }

  /** Joins the parts of a turn; the text is decoded from all tokens, because a character may span two parts. */
  private join(given: readonly (GenerateResult | null)[]): GenerateResult {
    const parts = given.filter((part) => part !== null);
    const { finishReason, stopString } = parts.at(-1)!;
    const tokenIds = Int32Array.from(parts.flatMap((part) => [...part.tokenIds]));
    const endsByToken = finishReason === "stop" && stopString === undefined;
    const sum = (pick: (stats: GenerateResult["stats"]) => number) =>
      parts.reduce((n, { stats }) => n + pick(stats), 0);
    return {
      tokenIds,
      logprobs: Float32Array.from(parts.flatMap((part) => [...part.logprobs])),
      finishReason,
      ...(stopString === undefined ? {} : { stopString }),
      text: this.engine.detokenize(endsByToken ? tokenIds.subarray(0, -1) : tokenIds),
      stats: {
        prefillTokens: sum((stats) => stats.prefillTokens),
        reusedTokens: sum((stats) => stats.reusedTokens),
        decodeTokens: sum((stats) => stats.decodeTokens),
        queueMs: sum((stats) => stats.queueMs),
        prefillMs: sum((stats) => stats.prefillMs),
        decodeMs: sum((stats) => stats.decodeMs),
      },
    };
  }
}

const emptyResult: GenerateResult = {
  tokenIds: new Int32Array(0),
  logprobs: new Float32Array(0),
  finishReason: "length",
  text: "",
  stats: { prefillTokens: 0, reusedTokens: 0, decodeTokens: 0, queueMs: 0, prefillMs: 0, decodeMs: 0 },
};

class SteeredSequence implements PolicySequence {
  constructor(
    private readonly sequence: PolicySequence,
    private readonly steering: Steering,
  ) {}

  get tokenCount(): number {
    return this.sequence.tokenCount;
  }

  generate(delta: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult> {
    return this.steering.generate(this.sequence, delta, options);
  }

  prefill(delta: ArrayLike<number>, options?: { signal?: AbortSignal }): Promise<void> {
    return this.sequence.prefill(delta, options);
  }

  goOnWith(engine: Pick<PolicyEngine, "createSequence">): void {
    this.sequence.goOnWith!(engine);
  }

  fork(): PolicySequence {
    return this.steering.steer(this.sequence.fork());
  }

  dispose(): void {
    this.sequence.dispose();
  }
}
