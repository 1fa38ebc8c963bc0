import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "../errors/engine-error.js";
import type { PlacedImage } from "../images/image-encoder.js";
import type { GenerateOptions, GenerateResult, PolicySequence } from "../policy-engine.js";
import type { FakeHost } from "./fake-script.js";

/** A sequence of the fake engine: it holds tokens, and counts the tokens that a real one would have evaluated. */
export class FakeSequence implements PolicySequence {
  private disposed = false;
  private running = false;
  private turn = 0;
  /** Tokens whose KV a real engine would have; the last sampled token is evaluated with the next delta. */
  private evaluated = 0;
  /** The images whose vectors are among its tokens. */
  private images: PlacedImage[] = [];

  constructor(
    private readonly engine: FakeHost,
    private readonly ids: number[] = [],
  ) {}

  get tokenCount(): number {
    return this.ids.length;
  }

  get tokenIds(): Int32Array {
    return Int32Array.from(this.ids);
  }

  async generate(deltaTokenIds: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult> {
    if (!(options.maxTokens >= 1)) {
      throw new EngineError("has a wrong value", {
        code: "engine/bad-option",
        subject: "generate.maxTokens",
        expected: "a whole number of at least 1",
        received: String(options.maxTokens),
      });
    }
    return this.occupy(deltaTokenIds, options.maxTokens, async (stats) => {
      const { tokenizer } = this.engine;
      const context = {
        text: tokenizer.detokenize(this.ids),
        tokenIds: this.tokenIds,
        turn: this.turn++,
        options,
      };
      const aborted = await this.wait(this.engine.latencyOf(context), options.signal);
      const reply = aborted ? "" : await this.engine.options.reply(context);
      const said = typeof reply === "string" ? { text: reply, end: true } : { end: true, ...reply };
      const tokens = [...tokenizer.tokenize(said.text)];
      if (said.end && !aborted) tokens.push(this.engine.info.eosToken!);
      const sampled = aborted
        ? { tokens: [], text: "", finishReason: "aborted" as const, stopString: undefined }
        : this.stop(tokens, options, said.end);
      const start = this.ids.length;
      for (const id of sampled.tokens) this.ids.push(id);
      this.evaluated = Math.max(this.evaluated, this.ids.length - 1);
      if (sampled.text !== "") options.onText?.(sampled.text);
      return {
        tokenIds: Int32Array.from(sampled.tokens),
        logprobs: Float32Array.from(sampled.tokens, (_, i) => this.engine.logprobAt(this.ids, start + i)),
        // The script is trusted to follow the grammar: its text without one is unknown.
        ...(options.grammar === undefined ? {} : { constrained: new Uint8Array(sampled.tokens.length) }),
        ...(options.topLogprobs
          ? {
              topLogprobs: sampled.tokens.map((_, i) =>
                this.engine.listLikeliest(this.ids.slice(0, start + i), options.topLogprobs!),
              ),
            }
          : {}),
        finishReason: sampled.finishReason,
        ...(sampled.stopString === undefined ? {} : { stopString: sampled.stopString }),
        text: sampled.text,
        stats: { ...stats, decodeTokens: sampled.tokens.length, queueMs: 0, prefillMs: 0, decodeMs: 0 },
      };
    });
  }

  async prefill(deltaTokenIds: ArrayLike<number>, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.occupy(deltaTokenIds, 0, async () => {
      await this.wait(this.engine.options.prefillLatencyMs ?? 0, options.signal);
    });
  }

  fork(): FakeSequence {
    this.checkAlive();
    const copy = new FakeSequence(this.engine, [...this.ids]);
    copy.evaluated = this.evaluated;
    copy.turn = this.turn;
    copy.images = [...this.images];
    this.engine.counts.created++;
    return copy;
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.engine.counts.disposed++;
  }

  /** Cuts at the first stop token (kept), stop string (kept in the tokens, removed from `text`) or the token limit. */
  private stop(
    tokens: readonly number[],
    options: GenerateOptions,
    ended: boolean,
  ): Pick<GenerateResult, "finishReason" | "text" | "stopString"> & { tokens: number[] } {
    const { tokenizer, info } = this.engine;
    const stopTokens = options.stopTokens ?? info.endOfGenerationTokens;
    const kept: number[] = [];
    for (const id of tokens) {
      if (kept.length === options.maxTokens)
        return { tokens: kept, text: tokenizer.detokenize(kept), finishReason: "length" };
      if (stopTokens.includes(id))
        return { tokens: [...kept, id], text: tokenizer.detokenize(kept), finishReason: "stop" };
      kept.push(id);
      if (!options.stopStrings?.length) continue;
      const text = tokenizer.detokenize(kept);
      const stopString = options.stopStrings.find((s) => text.endsWith(s));
      if (stopString !== undefined)
        return { tokens: kept, text: text.slice(0, -stopString.length), finishReason: "stop", stopString };
    }
    return { tokens: kept, text: tokenizer.detokenize(kept), finishReason: ended ? "stop" : "length" };
  }

  private async occupy<T>(
    deltaTokenIds: ArrayLike<number>,
    maxTokens: number,
    work: (stats: { prefillTokens: number; reusedTokens: number }) => Promise<T>,
  ): Promise<T> {
    this.checkAlive();
    const { info, counts } = this.engine;
    const delta = Array.from(deltaTokenIds);
    const fail = (summary: string, code: string, expected: string, received: string) =>
      new EngineError(summary, { code: `engine/${code}`, subject: "sequence", expected, received });
    if (this.running) throw fail("is busy", "busy", "one request at a time", "a second one");
    const { images } = this.engine;
    const bad = delta.find((id) => !(Number.isInteger(id) && id >= 0 && (id < info.vocabSize || images)));
    if (bad !== undefined) throw fail("got a bad token", "bad-token", `0 to ${info.vocabSize - 1}`, String(bad));
    const needed = this.ids.length + delta.length + maxTokens;
    if (needed > info.contextSize) {
      throw fail("does not fit", "context-exceeded", `at most ${info.contextSize} tokens`, `${needed} tokens`);
    }
    this.images.push(...(images?.use(delta) ?? []));
    this.running = true;
    counts.requests++;
    counts.inFlight++;
    counts.mostInFlight = Math.max(counts.mostInFlight, counts.inFlight);
    const stats = { prefillTokens: this.ids.length + delta.length - this.evaluated, reusedTokens: this.evaluated };
    for (const id of delta) this.ids.push(id);
    this.evaluated = this.ids.length;
    counts.prefillTokens += stats.prefillTokens;
    try {
      return await work(stats);
    } finally {
      counts.inFlight--;
      this.running = false;
    }
  }

  /** @returns whether the signal, or the sequence's disposal, ended the wait. */
  private async wait(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    // A reply never arrives in the same tick, even without latency, as in a real engine.
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    return (signal?.aborted ?? false) || this.disposed;
  }

  private checkAlive(): void {
    if (!this.disposed) return;
    throw new EngineError("was disposed", {
      code: "engine/disposed",
      subject: "sequence",
      expected: "a sequence in use",
      received: "a disposed one",
    });
  }
}
