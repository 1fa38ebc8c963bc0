import {
  EngineError,
  type GenerateOptions,
  type GenerateResult,
  type PlacedImage,
  type PolicyEngine,
  type PolicySequence,
  type TokenCandidate,
} from "@cria/core";
import { pickSampling } from "@cria/core/internal";
import type { ImageStore } from "./images/image-store.js";
import { versionOf } from "./kept-versions.js";
import { callNative, callNativeSync } from "./native.js";
import type { NativeGenerateParams, NativeModel } from "./native-types.js";

/** One conversation on the model: its tokens, and its KV while there is space. */
export class LlamaSequence implements PolicySequence {
  private disposed = false;
  /** True while its images are loaded into memory for a request. */
  private preparing = false;

  /** @param images the images among its tokens, kept alive as long as the sequence. */
  constructor(
    private readonly native: NativeModel,
    private readonly store: ImageStore | undefined,
    private readonly endTokens: readonly number[],
    private readonly id: number,
    private count = 0,
    private images: readonly PlacedImage[] = [],
  ) {}

  get tokenCount(): number {
    return this.count;
  }

  /** A copy of the tokens so far. */
  get tokenIds(): Int32Array {
    this.checkAlive();
    return callNativeSync(() => this.native.sequenceTokens(this.id));
  }

  async generate(deltaTokenIds: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult> {
    const params: NativeGenerateParams = {
      maxTokens: options.maxTokens,
      ...pickSampling(options),
      // Without a seed, each request draws one.
      seed: options.seed ?? Math.floor(Math.random() * 0x1_0000_0000),
      stopTokens: Int32Array.from(options.stopTokens ?? this.endTokens),
      stopStrings: [...(options.stopStrings ?? [])],
      grammar: options.grammar,
      topLogprobs: options.topLogprobs ?? 0,
    };
    if (!(params.maxTokens >= 1)) {
      throw new EngineError("has a wrong value", {
        code: "engine/bad-option",
        subject: "generate.maxTokens",
        expected: "a whole number of at least 1",
        received: String(options.maxTokens),
      });
    }
    return this.run(deltaTokenIds, params, options.signal, options.onText);
  }

  async prefill(deltaTokenIds: ArrayLike<number>, options: { signal?: AbortSignal } = {}): Promise<void> {
    const params = {
      maxTokens: 0,
      ...pickSampling({}),
      seed: 0,
      stopTokens: new Int32Array(0),
      stopStrings: [],
      topLogprobs: 0,
    };
    await this.run(deltaTokenIds, params, options.signal, undefined);
  }

  fork(): LlamaSequence {
    this.checkIdle();
    const id = callNativeSync(() => this.native.forkSequence(this.id));
    return new LlamaSequence(this.native, this.store, this.endTokens, id, this.count, this.images);
  }

  /**
   * @throws EngineError while a request runs (`engine/sequence-busy`), and unless both this sequence and `engine` are
   * of kept versions of one model (`engine/live-version`).
   */
  goOnWith(engine: Pick<PolicyEngine, "createSequence">): void {
    this.checkIdle();
    callNativeSync(() => this.native.takeOver(this.id, versionOf(engine, this.native)));
  }

  /**
   * Forgets the tokens; the next request must send a whole prompt. Parts of the prompt that this or another sequence
   * has evaluated are not evaluated again.
   * @throws EngineError while a request runs.
   */
  reset(): void {
    this.checkIdle();
    callNativeSync(() => this.native.resetSequence(this.id));
    this.count = 0;
    this.images = [];
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    callNativeSync(() => this.native.disposeSequence(this.id));
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  private async run(
    deltaTokenIds: ArrayLike<number>,
    params: NativeGenerateParams,
    signal: AbortSignal | undefined,
    onText: ((text: string) => void) | undefined,
  ): Promise<GenerateResult> {
    this.checkIdle();
    const delta = Int32Array.from(deltaTokenIds);
    const shown = this.store?.list(delta, "deltaTokenIds") ?? [];
    const images = [...new Set([...this.images, ...shown])];
    if (images.length === 0) return this.request(delta, params, signal, onText);
    // Checks first, so that a request that cannot be evaluated encodes no images: one large image takes seconds and
    // gigabytes.
    callNativeSync(() => this.native.checkFits(this.id, delta.length, params.maxTokens));
    this.preparing = true;
    let release: () => void;
    try {
      // All images: after a flush or an eviction the whole sequence is evaluated again.
      release = await this.store!.pin(images, signal);
    } catch (error) {
      // The signal aborted, or the model was disposed of.
      if (signal?.aborted || /aborted|disposed/.test((error as EngineError).code)) return abortedEarly(params);
      throw error;
    } finally {
      this.preparing = false;
    }
    try {
      if (this.disposed) return abortedEarly(params);
      this.images = images;
      return await this.request(delta, params, signal, onText);
    } finally {
      release();
    }
  }

  private request(
    delta: Int32Array,
    params: NativeGenerateParams,
    signal: AbortSignal | undefined,
    onText: ((text: string) => void) | undefined,
  ): Promise<GenerateResult> {
    return callNative(async () => {
      const { request, promise } = this.native.generate(this.id, delta, params, onText);
      const abort = () => this.native.abort(request);
      if (signal?.aborted) abort();
      signal?.addEventListener("abort", abort, { once: true });
      try {
        const { topTokens, topLogprobs, ...result } = await promise;
        this.count += delta.length + result.tokenIds.length;
        if (params.topLogprobs === 0) return result;
        return { ...result, topLogprobs: listCandidates(params.topLogprobs, topTokens, topLogprobs) };
      } catch (error) {
        // Tokens appended and sampled before a failure stay.
        if (!this.disposed) {
          const tokens = this.native.sequenceTokens(this.id);
          this.count = tokens.length;
          this.images = this.store?.list(tokens, "sequence") ?? [];
        }
        throw error;
      } finally {
        signal?.removeEventListener("abort", abort);
      }
    });
  }

  private checkIdle(): void {
    this.checkAlive();
    if (!this.preparing) return;
    throw new EngineError("is still generating", {
      code: "engine/sequence-busy",
      subject: "sequence",
      expected: "an idle sequence",
      received: "a sequence with a running call",
      remedy: "await the running call first",
    });
  }

  private checkAlive(): void {
    if (!this.disposed) return;
    throw new EngineError("was disposed", {
      code: "engine/disposed",
      subject: "sequence",
      expected: "a sequence in use",
      received: "a disposed one",
      remedy: "create a new sequence, or fork before disposing",
    });
  }
}

/** The result of a request that was aborted before its images were in memory: nothing was appended. */
function abortedEarly({ grammar, topLogprobs }: NativeGenerateParams): GenerateResult {
  return {
    tokenIds: new Int32Array(0),
    logprobs: new Float32Array(0),
    ...(grammar === undefined ? {} : { constrained: new Uint8Array(0) }),
    ...(topLogprobs === 0 ? {} : { topLogprobs: [] }),
    finishReason: "aborted",
    text: "",
    stats: { prefillTokens: 0, reusedTokens: 0, decodeTokens: 0, queueMs: 0, prefillMs: 0, decodeMs: 0 },
  };
}

/** @param count number of candidates for each sampled token; those without a token (-1) are left out. */
function listCandidates(
  count: number,
  tokens: Int32Array = new Int32Array(0),
  logprobs: Float32Array = new Float32Array(0),
): TokenCandidate[][] {
  return Array.from({ length: tokens.length / count }, (_, t) => {
    const ids = [...tokens.subarray(t * count, (t + 1) * count)].filter((id) => id >= 0);
    return ids.map((id, i) => ({ id, logprob: logprobs[t * count + i]! }));
  });
}
