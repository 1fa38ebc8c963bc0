import { EngineError } from "../errors/engine-error.js";
import type {
  LikeliestOptions,
  LikeliestTokens,
  LossCandidates,
  LossFunction,
  ModelInfo,
  OptimizerOptions,
  PolicyEngine,
  ScoreOptions,
  ScoreResult,
  ScoreSequence,
  SpecialToken,
  TokenCandidate,
  TrainCandidates,
  TrainOptions,
  TrainResult,
  TrainSequence,
} from "../policy-engine.js";
import { FakeImages, fakeImageMarks } from "./fake-images.js";
import type { FakeContext, FakeEngineOptions, FakeHost } from "./fake-script.js";
import { FakeSequence } from "./fake-sequence.js";
import { FakeTokenizer, fakeChatTemplate } from "./fake-tokenizer.js";

const fakeEntropy = 1;

/**
 * An engine without a model: its replies are scripted, its tokens are bytes and ChatML's special tokens. Logprobs are a
 * fixed function of each token and the previous one, the same in `generate` and `score`. `train` runs the loss and
 * counts steps, but changes nothing.
 */
export class FakeEngine implements PolicyEngine, FakeHost {
  readonly tokenizer: FakeTokenizer;
  readonly info: ModelInfo;
  readonly chatTemplate: string | null;
  readonly images?: FakeImages;
  /** Records of the calls. Every sequence must be created once and disposed once. */
  readonly counts = {
    created: 0,
    disposed: 0,
    requests: 0,
    inFlight: 0,
    mostInFlight: 0,
    prefillTokens: 0,
    scoreCalls: 0,
    trainCalls: 0,
    optimizerSteps: 0,
    flushes: 0,
  };
  private disposed = false;

  constructor(readonly options: FakeEngineOptions) {
    const { images } = options;
    this.tokenizer = new FakeTokenizer([...(options.specialTokens ?? []), ...(images ? fakeImageMarks : [])]);
    const ends = (options.endTokens ?? ["<|im_end|>", "<|endoftext|>"]).map((text) => this.tokenizer.idOf(text));
    this.chatTemplate = options.chatTemplate === undefined ? fakeChatTemplate : options.chatTemplate;
    this.info = {
      path: "fake",
      architecture: "fake",
      name: "fake",
      parameterCount: 0,
      vocabSize: this.tokenizer.vocabSize,
      embeddingSize: 0,
      layerCount: 0,
      headCount: 0,
      kvHeadCount: 0,
      headSize: 0,
      contextSize: options.contextSize ?? 4096,
      trainingContextSize: options.contextSize ?? 4096,
      maxSequences: options.maxSequences ?? 16,
      device: "none",
      flashAttention: false,
      threads: 1,
      cpuKernel: "portable",
      ggmlBuild: "default",
      samplesAsTrained: false,
      bosToken: null,
      eosToken: ends[0]!,
      endOfGenerationTokens: ends,
      addBos: false,
      trainable: "lora",
      trainableParameterCount: 0,
      weightTypes: {},
    };
    if (images) {
      const [start, end] = fakeImageMarks;
      const marks = [this.tokenizer.idOf(start), this.tokenizer.idOf(end)] as const;
      this.images = new FakeImages(this.info.vocabSize, marks, images === true ? {} : images);
    }
  }

  tokenize(text: string, options?: { special?: boolean }): Int32Array {
    return this.tokenizer.tokenize(text, options);
  }

  listSpecialTokens(): readonly SpecialToken[] {
    return this.tokenizer.listSpecialTokens();
  }

  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string {
    return this.tokenizer.detokenize(tokenIds, options);
  }

  createSequence(): FakeSequence {
    this.checkAlive();
    this.counts.created++;
    return new FakeSequence(this);
  }

  /**
   * In (-1, 0), determined by the token and the previous one. 0 for the first token, which has no prefix, and for
   * vectors of images, which are not predicted.
   */
  logprobAt(tokenIds: ArrayLike<number>, at: number): number {
    if (at === 0 || tokenIds[at]! >= this.info.vocabSize) return 0;
    const before = this.images?.describe(tokenIds[at - 1]!) ?? tokenIds[at - 1]!;
    return -Math.fround((1 + ((tokenIds[at]! * 31 + before * 17) % 97)) / 99);
  }

  /** The tokens that may follow, by falling logprob, ties by id. */
  listLikeliest(tokenIds: readonly number[], count: number): TokenCandidate[] {
    const all = Array.from({ length: this.info.vocabSize }, (_, id) => ({
      id,
      logprob: this.logprobAt([...tokenIds, id], tokenIds.length),
    }));
    return all.sort((a, b) => b.logprob - a.logprob || a.id - b.id).slice(0, count);
  }

  latencyOf(context: FakeContext): number {
    const { latencyMs = 0 } = this.options;
    return typeof latencyMs === "function" ? latencyMs(context) : latencyMs;
  }

  async score(sequences: readonly ScoreSequence[], options: ScoreOptions = {}): Promise<ScoreResult[]> {
    this.checkAlive();
    options.signal?.throwIfAborted();
    this.counts.scoreCalls++;
    const { referenceScale = 1 } = this.options;
    const { likeliest } = options;
    return sequences.map(({ tokenIds, from = 1 }) => {
      this.images?.use(tokenIds);
      const scored = (value: (at: number) => number) =>
        Float32Array.from({ length: tokenIds.length }, (_, at) =>
          at >= Math.max(1, from) && tokenIds[at]! < this.info.vocabSize ? value(at) : 0,
        );
      return {
        logprobs: scored((at) => this.logprobAt(tokenIds, at) * (options.adapter === false ? referenceScale : 1)),
        entropy: options.entropy ? scored(() => fakeEntropy) : null,
        // Computed as if the token had one rival, and nothing else were possible.
        sumPiSquared: options.sumPiSquared
          ? scored((at) => {
              const p = Math.exp(this.logprobAt(tokenIds, at));
              return p * p + (1 - p) ** 2;
            })
          : null,
        ...(likeliest ? { likeliest: this.findLikeliest(tokenIds, Math.max(1, from), likeliest) } : {}),
      };
    });
  }

  private findLikeliest(
    tokenIds: ArrayLike<number>,
    from: number,
    { count, below = this.info.vocabSize }: LikeliestOptions,
  ): LikeliestTokens {
    const size = tokenIds.length * count;
    const found = { count, ids: new Int32Array(size), logprobs: new Float32Array(size) };
    for (let t = from; t < tokenIds.length; t++) {
      const list = this.listLikeliest([tokenIds[t - 1]!], this.info.vocabSize).filter(({ id }) => id < below);
      list.slice(0, count).forEach(({ id, logprob }, k) => {
        found.ids[t * count + k] = id;
        found.logprobs[t * count + k] = logprob;
      });
    }
    return found;
  }

  /** One micro-batch with everything. `gradNorm` is the norm of dLoss/dLogprobs. */
  async train(
    batch: readonly TrainSequence[],
    loss: LossFunction,
    optimizer: OptimizerOptions | null,
    options: TrainOptions = {},
  ): Promise<TrainResult> {
    this.checkAlive();
    options.signal?.throwIfAborted();
    this.counts.trainCalls++;
    if (optimizer) this.counts.optimizerSteps++;
    const offsets = [0];
    const logprobs: number[] = [];
    const columns: Record<string, number[]> = {};
    const others = new FakeCandidates();
    for (const [index, { tokenIds, lossMask, columns: given = {}, candidates }] of batch.entries()) {
      this.images?.use(tokenIds);
      for (let t = 0; t < tokenIds.length; t++) {
        if (!lossMask[t]) continue;
        if (tokenIds[t]! >= this.info.vocabSize) throw noTarget(index, t);
        logprobs.push(this.logprobAt(tokenIds, t));
        for (const [name, values] of Object.entries(given)) {
          columns[name] ??= [];
          columns[name].push(values[t]!);
        }
        if (candidates) others.add(candidates, t, (id) => this.logprobAt([tokenIds[t - 1]!, id], 1));
      }
      offsets.push(logprobs.length);
    }
    const outputs = loss({
      sequenceIndices: Int32Array.from(batch, (_, i) => i),
      offsets: Int32Array.from(offsets),
      logprobs: Float32Array.from(logprobs),
      entropy: new Float32Array(logprobs.length).fill(fakeEntropy),
      columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, Float32Array.from(values)])),
      ...others.read(),
      totals: { tokens: logprobs.length, sequences: batch.length },
    });
    return {
      loss: outputs.loss,
      gradNorm: optimizer ? Math.hypot(...outputs.dLogprobs) : 0,
      metrics: outputs.metrics ?? {},
      lossTokens: logprobs.length,
      evaluatedTokens: batch.reduce((sum, sequence) => sum + sequence.tokenIds.length, 0),
      paddingTokens: 0,
      microBatches: 1,
    };
  }

  async flushCache(): Promise<void> {
    this.counts.flushes++;
  }

  async saveAdapter(): Promise<void> {
    throw this.makeNothingToSave("adapter");
  }

  async saveModel(): Promise<void> {
    throw this.makeNothingToSave("model");
  }

  async dispose(): Promise<void> {
    this.disposed = true;
  }

  private makeNothingToSave(what: string): EngineError {
    return new EngineError("has no weights", { code: "engine/nothing-to-save", subject: `fake ${what}` });
  }

  private checkAlive(): void {
    if (!this.disposed) return;
    throw new EngineError("was disposed", { code: "engine/disposed", subject: "fake engine" });
  }
}

/** The candidates of a batch's tokens in the loss. */
class FakeCandidates {
  private count = 0;
  private readonly ids: number[] = [];
  private readonly logprobs: number[] = [];
  private readonly columns: Record<string, number[]> = {};

  add({ count, ids, columns }: TrainCandidates, t: number, score: (id: number) => number): void {
    this.count = count;
    for (let k = t * count; k < (t + 1) * count; k++) {
      this.ids.push(ids[k]!);
      this.logprobs.push(score(ids[k]!));
      for (const [name, values] of Object.entries(columns)) {
        this.columns[name] ??= [];
        this.columns[name].push(values[k]!);
      }
    }
  }

  read(): { candidates?: LossCandidates } {
    const { count, ids, logprobs, columns } = this;
    if (count === 0) return {};
    const own = Object.entries(columns).map(([name, values]) => [name, Float32Array.from(values)] as const);
    const arrays = { ids: Int32Array.from(ids), logprobs: Float32Array.from(logprobs) };
    return { candidates: { count, ...arrays, columns: Object.fromEntries(own) } };
  }
}

function noTarget(sequence: number, token: number): EngineError {
  return new EngineError("is a vector of an image, which cannot be predicted", {
    code: "engine/bad-batch",
    subject: `sequence ${sequence}, token ${token}`,
    expected: "a lossMask of 0",
    received: "1",
  });
}
