import type {
  GradientShard,
  LossFunction,
  ModelInfo,
  OptimizerOptions,
  PolicyEngine,
  ScoreOptions,
  ScoreResult,
  ScoreSequence,
  ScoreShard,
  ShardGradient,
  ShardScores,
  SpecialToken,
  TrainOptions,
  TrainResult,
  TrainSequence,
} from "@cria/core";
import type { ImageStore } from "./images/image-store.js";
import { JobQueue } from "./job-queue.js";
import { LlamaPolicyVersion } from "./llama-policy-version.js";
import { LlamaSequence } from "./llama-sequence.js";
import { callNative, callNativeSync } from "./native.js";
import type { NativeModel, SchedulerStats, TensorInfo, TensorPart } from "./native-types.js";
import { computeShard } from "./training/gradient-shards.js";
import { computeScores, scoreSequences } from "./training/score-sequences.js";
import { trainBatch } from "./training/train-batch.js";

/** Texts of tokens that end a turn, and that llama.cpp does not know as such: of calls of FunctionGemma, GLM and Apertus, of Kimi K3. */
const furtherEnds = ["<start_function_response>", "<|observation|>", "<|tools_suffix|>", "<|end_of_msg|>"];

/** A model on llama.cpp: the engine that generates and trains over one copy of the weights. Made by `loadModel`. */
export class LlamaModel implements PolicyEngine {
  readonly info: ModelInfo;
  readonly chatTemplate: string | null;
  private readonly jobs = new JobQueue();
  private specialTokens: SpecialToken[] | undefined;

  /** @param images if the model takes images. */
  constructor(
    private readonly native: NativeModel,
    readonly images?: ImageStore,
  ) {
    const { chatTemplate, notice: _, ...info } = native.info();
    this.info = { ...info, endOfGenerationTokens: [...info.endOfGenerationTokens, ...this.findFurtherEnds(info)] };
    this.chatTemplate = chatTemplate;
  }

  /** Finds further end-of-turn tokens, for models whose files name only one. */
  private findFurtherEnds({ endOfGenerationTokens }: Pick<ModelInfo, "endOfGenerationTokens">): number[] {
    return furtherEnds.flatMap((text) => {
      const [token, ...rest] = this.tokenize(text);
      return token === undefined || rest.length > 0 || endOfGenerationTokens.includes(token) ? [] : [token];
    });
  }

  tokenize(text: string, options: { special?: boolean } = {}): Int32Array {
    return callNativeSync(() => this.native.tokenize(text, options.special ?? true));
  }

  tokenizeAside(text: string, options: { special?: boolean } = {}): Promise<Int32Array> {
    return callNative(() => this.native.tokenizeAside(text, options.special ?? true));
  }

  listSpecialTokens(): readonly SpecialToken[] {
    this.specialTokens ??= callNativeSync(() => this.native.specialTokens());
    return this.specialTokens;
  }

  detokenize(tokenIds: ArrayLike<number>, options: { special?: boolean } = {}): string {
    return callNativeSync(() => this.native.detokenize(Int32Array.from(tokenIds), options.special ?? true));
  }

  createSequence(): LlamaSequence {
    return this.createSequenceOf(undefined);
  }

  private createSequenceOf(version: number | undefined): LlamaSequence {
    return new LlamaSequence(
      this.native,
      this.images,
      this.info.endOfGenerationTokens,
      callNativeSync(() => this.native.createSequence(version)),
    );
  }

  /**
   * Keeps the policy as the updates that were asked for before leave it, so that its conversations go on unchanged while
   * training goes on. Takes the memory of the trained weights: of one adapter, or of the whole model.
   * @param options `path`: a file that an earlier version was saved to; its values are kept instead.
   * @throws EngineError for a model that is not trained (`engine/not-trainable`), or a file of another one.
   */
  keepVersion({ path }: { path?: string | undefined } = {}): Promise<LlamaPolicyVersion<LlamaModel>> {
    return this.jobs.run(async () => {
      const version = await callNative(() => this.native.keepVersion(path));
      return new LlamaPolicyVersion<LlamaModel>(this.native, version, this, () => this.createSequenceOf(version));
    });
  }

  score(sequences: readonly ScoreSequence[], options: ScoreOptions = {}): Promise<ScoreResult[]> {
    return this.jobs.run(() => scoreSequences(this.native, this.info, this.images, sequences, options));
  }

  computeScores(shard: ScoreShard, { signal }: { signal?: AbortSignal } = {}): Promise<ShardScores> {
    return this.jobs.run(() => computeScores(this.native, this.images, shard, signal));
  }

  train(
    batch: readonly TrainSequence[],
    loss: LossFunction,
    optimizer: OptimizerOptions | null,
    options: TrainOptions = {},
  ): Promise<TrainResult> {
    return this.jobs.run(() => trainBatch(this.native, this.info, this.images, batch, loss, optimizer, options));
  }

  /** Discards gradients that were accumulated here without a step. */
  computeGradient(
    shard: GradientShard,
    loss: LossFunction,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ShardGradient> {
    return this.jobs.run(() => {
      signal?.throwIfAborted();
      return computeShard(this.native, this.images, shard, loss, signal);
    });
  }

  /** Discards gradients that were accumulated without a step. */
  zeroGradients(): Promise<void> {
    return this.jobs.run(() => callNative(() => this.native.zeroGradients()));
  }

  flushCache(): Promise<void> {
    return callNative(() => this.native.flush());
  }

  saveAdapter(path: string): Promise<void> {
    return this.jobs.run(() => callNative(() => this.native.saveAdapter(path)));
  }

  saveModel(path: string): Promise<void> {
    return this.jobs.run(() => callNative(() => this.native.saveModel(path)));
  }

  /** Names, types and shapes of all weights and adapter tensors; needs a trainable model. */
  listTensors(): TensorInfo[] {
    return callNativeSync(() => this.native.tensors());
  }

  /** A tensor's values as floats; gradients and Adam moments exist for trained tensors. */
  readTensor(name: string, part: TensorPart = "value"): Promise<Float32Array> {
    return this.jobs.run(() => callNative(() => this.native.readTensor(name, part)));
  }

  /** Overwrites a trained F32 tensor; forgets cached KV when its value changed. */
  writeTensor(name: string, values: Float32Array, part: TensorPart = "value"): Promise<void> {
    return this.jobs.run(async () => {
      await callNative(() => this.native.writeTensor(name, part, values));
      if (part === "value") await callNative(() => this.native.flush());
    });
  }

  /** Totals of the scheduler since loading, and its current state. */
  schedulerStats(): SchedulerStats {
    return callNativeSync(() => this.native.schedulerStats());
  }

  /** Number of optimizer steps taken; Adam's bias correction depends on it. */
  get stepCount(): number {
    return callNativeSync(() => this.native.stepCount());
  }

  set stepCount(count: number) {
    callNativeSync(() => this.native.setStepCount(count));
  }

  /** Number of layers whose activations the last training forward kept; the others were recomputed. */
  get keptLayers(): number {
    return callNativeSync(() => this.native.keptLayers());
  }

  /** Aborts requests in flight and frees the memory. May be called twice. */
  async dispose(): Promise<void> {
    await Promise.all([this.images?.dispose(), callNative(() => this.native.dispose())]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }
}
