/**
 * The complete contract of the native addon (native/src/binding). The addon checks arguments; errors arrive as JS
 * errors with `code`, `subject`, `expected`, `received` and `remedy`.
 */
import type { GenerateResult, ImagePiece, MicroBatchShard, ModelInfo, SamplingOptions, SpecialToken } from "@cria/core";

export type GgufValue =
  | { type: "string"; value: string }
  | { type: "uint32" | "int32" | "float32"; value: number }
  | { type: "bool"; value: boolean }
  | { type: "array"; of: "string"; value: string[] }
  | { type: "array"; of: "int32" | "float32"; value: number[] };

export type GgufTensorType =
  | "f32"
  | "f16"
  | "bf16"
  | "q8_0"
  | "q4_0"
  | "q4_1"
  | "q5_0"
  | "q5_1"
  | "q2_K"
  | "q3_K"
  | "q4_K"
  | "q5_K"
  | "q6_K"
  | "iq2_s"
  | "iq3_xxs"
  | "iq3_s"
  | "iq4_nl"
  | "iq4_xs"
  | "mxfp4"
  | "tq1_0"
  | "tq2_0";

export interface GgufTensor {
  name: string;
  type: GgufTensorType;
  /** Fastest axis first; a linear layer's weight is [inputs, outputs]. */
  shape: number[];
  data: Float32Array;
}

export interface GgufFile {
  metadata: Record<string, GgufValue>;
  tensors: GgufTensor[];
}

export interface NativeRuntimeInfo {
  llamaVersion: string;
  ggmlVersion: string;
  librariesFolder: string;
  /** See `ModelInfo.cpuKernel`. */
  cpuKernel: string;
  ggmlBuild: string;
  /** Valid values of CRIA_CPU_KERNEL on this machine, the best first. */
  usableCpuKernels: string[];
  devices: string[];
}

export interface NativeLoadOptions {
  path: string;
  device?: string;
  gpuLayers?: number;
  contextSize?: number;
  scoredContextSize?: number;
  maxSequences?: number;
  threads?: number;
  kvType?: string;
  flashAttention?: boolean | "auto";
  lora?: { rank?: number; alpha?: number; targets?: string[]; path?: string } | null;
  trainable?: string;
  seed?: number;
  deterministic?: boolean;
  prefixReuse?: boolean;
  drafting?: boolean | "always";
  prefillChunk?: number;
  swapBytes?: number;
  trainingMemory?: number;
  /** A critic: forward returns values instead of logprobs, backward takes their gradient. */
  valueHead?: boolean;
  /**
   * For checks without a GPU: training runs on the CPU in the way it would on a device, with ggml's operations or a
   * library of our device kernels. Operations in `refused` (ggml's names) count as unsupported, and so does what the
   * function `cria_device_supports` of the library `operations` denies.
   */
  emulatedDevice?: { kernels?: string; refused?: string[]; operations?: string };
}

export interface NativeGenerateParams extends Required<SamplingOptions> {
  /** 0 evaluates the delta only. */
  maxTokens: number;
  stopTokens: Int32Array;
  stopStrings: string[];
  grammar?: string;
  topLogprobs: number;
}

export interface NativeGenerateResult extends Omit<GenerateResult, "topLogprobs"> {
  /** Only with `topLogprobs`: this many entries for each sampled token; -1 where a grammar allowed fewer. */
  topTokens?: Int32Array;
  topLogprobs?: Float32Array;
}

/** A micro-batch with the vectors of its images; see native/include/cria/trainer.h. */
export interface NativeMicroBatch extends Omit<MicroBatchShard, "images"> {
  adapter: boolean;
  /**
   * Ids of vectors for the token ids from the vocabulary's end on, which are numbered within this batch. Absent: none.
   */
  vectors?: Int32Array;
}

/** Further quantities that `forward` computes; 0, or left out: none. */
export interface NativeScoreRequest {
  /** Sums of the squared probabilities. */
  squares?: boolean;
  /** Number of most likely tokens. */
  top?: number;
  /** Only ids below this are among them; 0: all. */
  topBelow?: number;
}

export interface NativeScores {
  logprobs: Float32Array;
  entropy: Float32Array;
  /** Sums of the squared probabilities of each distribution; only on request. */
  sumSquares?: Float32Array;
  /** Logprobs of the batch's candidates, if it has any. */
  candidates?: Float32Array;
  /** The most likely tokens in place of each target, by falling logprob, ties by id; only on request. */
  topTokens?: Int32Array;
  topLogprobs?: Float32Array;
}

export interface NativeOptimizer {
  learningRate: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  weightDecay: number;
  maxGradNorm: number;
}

export type TensorPart = "value" | "gradient" | "moment1" | "moment2";

export interface TensorInfo {
  name: string;
  type: string;
  shape: number[];
  trainable: boolean;
}

export interface SchedulerStats {
  prefillTokens: number;
  reusedTokens: number;
  decodeTokens: number;
  /** Rows decoded only to keep a batch contiguous. */
  paddingTokens: number;
  /** Tokens evaluated before they were sampled, because earlier texts suggest them (`LoadModelOptions.drafting`). */
  draftTokens: number;
  /** Those of them that were sampled then. */
  acceptedDraftTokens: number;
  /** Sequences moved to other KV slots, so that decoding ones are adjacent. */
  movedSequences: number;
  /** Calls of llama_decode, for prompts and for sampling. */
  decodeCalls: number;
  evictions: number;
  restores: number;
  recomputedTokens: number;
  /** Time inside llama_decode. */
  llamaSeconds: number;
  /** Time of whole steps: scheduling, llama_decode, sampling, stops; excludes waiting for work. */
  busySeconds: number;
  /** Current sequences, those of them with KV in the cache, requests in flight, bytes of KV saved outside the cache. */
  sequences: number;
  residentSequences: number;
  requests: number;
  swappedBytes: number;
}

export interface NativeProjectorOptions {
  /** Path of libcria-vision.so. */
  library: string;
  path: string;
  threads: number;
  /**
   * Minimum number of tokens of an image, and `maxTokens` the maximum, for projectors that take images of any size; 0:
   * the file's limits.
   */
  minTokens: number;
  maxTokens: number;
}

/** A projector that libcria-vision.so has opened for a model. It works on its own thread, one call after another. */
export interface NativeProjector {
  info(): {
    type: string;
    /** Floats of a vector: the model's embedding size, times 1 + its deep layers for Qwen3-VL. */
    vectorSize: number;
  };
  /** The layout in a prompt of an image of this size; takes microseconds. Throws if the projector cannot take it. */
  layout(width: number, height: number): ImagePiece[];
  /**
   * The vectors of a PNG, JPEG, BMP or GIF, in order (a WebP is decoded before, by `toNativeFile`). The file is decoded
   * under the limit of pixels and turned by its EXIF orientation (1 to 8).
   */
  encode(file: Uint8Array, maxPixels: number, orientation: number): Promise<{ vectors: Float32Array }>;
  /** The file's pixels, over white where they are transparent. */
  decode(
    file: Uint8Array,
    maxPixels: number,
    orientation: number,
  ): Promise<{ width: number; height: number; rgb: Uint8Array }>;
  dispose(): Promise<void>;
}

export interface NativeModel {
  /** Opens a projector with this model's vocabulary and embedding size. */
  openProjector(options: NativeProjectorOptions): Promise<NativeProjector>;
  /**
   * Defines ids of vectors: `count` from `first` on, which must be the end of the last definition, or of the
   * vocabulary. They may be used in sequences at once, and stay defined. `columns` and `rows` as in the layout.
   */
  defineVectors(first: number, count: number, columns: number, rows: number): void;
  /** Sets the values of ids that were defined together. A copy is kept until they are dropped. */
  holdVectors(first: number, values: Float32Array): void;
  /** Forgets values. No request in flight and no micro-batch may need them. */
  dropVectors(first: number): void;
  /** `notice`: a message for the user, for example that device "auto" does not use an existing GPU. */
  info(): ModelInfo & { chatTemplate: string | null; notice: string | null };
  tokenize(text: string, special: boolean): Int32Array;
  /** The same on the job thread. */
  tokenizeAside(text: string, special: boolean): Promise<Int32Array>;
  detokenize(tokenIds: Int32Array, special: boolean): string;
  /** Control, unknown and user-defined tokens, by id. */
  specialTokens(): SpecialToken[];
  /**
   * Keeps a copy of the trained weights, or the values of a file that `saveVersion` wrote; waits for a running optimizer
   * step.
   */
  keepVersion(path?: string): Promise<number>;
  /** Frees a kept version; throws while a sequence uses it. */
  dropVersion(version: number): Promise<void>;
  /** @param version the version that evaluates and samples it; default: the live policy. */
  createSequence(version?: number): number;
  forkSequence(sequence: number): number;
  disposeSequence(sequence: number): void;
  /** Forgets the tokens; the KV stays until the space is needed. */
  /**
   * Lets a kept version sample the sequence from here on, with the keys and values that others evaluated.
   * @param version default: the live policy, which throws.
   */
  takeOver(sequence: number, version?: number): void;
  resetSequence(sequence: number): void;
  /** Throws the errors of `generate` for a request with this many new tokens, before their vectors exist. */
  checkFits(sequence: number, deltaLength: number, maxTokens: number): void;
  sequenceTokens(sequence: number): Int32Array;
  generate(
    sequence: number,
    delta: Int32Array,
    params: NativeGenerateParams,
    onText?: (text: string) => void,
  ): { request: number; promise: Promise<NativeGenerateResult> };
  abort(request: number): void;
  /** Forgets the KV of the live policy. */
  flush(): Promise<void>;
  schedulerStats(): SchedulerStats;
  /** `keep` allows a later backward. */
  forward(batch: NativeMicroBatch, keep: boolean, request?: NativeScoreRequest): Promise<NativeScores>;
  /** `dCandidates` is as long as the candidates of `forward`'s batch; left out if it has none. */
  backward(dLogprobs: Float32Array, dEntropy: Float32Array, dCandidates?: Float32Array): Promise<void>;
  step(optimizer: NativeOptimizer): Promise<{ gradNorm: number; stepped: boolean }>;
  zeroGradients(): Promise<void>;
  abortTraining(): void;
  tensors(): TensorInfo[];
  /** @param version the version to read from; default: the live policy. */
  readTensor(name: string, what: TensorPart, version?: number): Promise<Float32Array>;
  /**
   * @param version the version to write to, whose KV is then forgotten; throws while a sequence uses it. Default:
   * the live policy.
   */
  writeTensor(name: string, what: TensorPart, values: Float32Array, version?: number): Promise<void>;
  stepCount(): number;
  setStepCount(count: number): void;
  /**
   * True if training's attention skips pairs of tokens that do not see each other, rather than computing all pairs
   * of a row; false for a model that only generates.
   */
  attendsBlockwise(): boolean;
  /** Number of layers of the last kept forward whose activations were not recomputed. */
  keptLayers(): number;
  saveAdapter(path: string): Promise<void>;
  /** Writes a kept version: an adapter, or the whole model. */
  saveVersion(version: number, path: string): Promise<void>;
  saveModel(path: string): Promise<void>;
  dispose(): Promise<void>;
}

export interface NativeAddon {
  runtimeInfo(): NativeRuntimeInfo;
  /**
   * Looks for the parts that a backend needs, in order. When all exist, loads its library from a folder into this process.
   */
  loadBackend(options: {
    name: string;
    folder?: string;
    /** Folders of libraries to try after the system's own. */
    search: string[];
  }): { name: string; found: string | null; problem: string | null }[];
  /** Loads libcria-vision.so. Returns the release of llama.cpp that it was compiled for, which must be the addon's. */
  loadVision(library: string): string;
  /**
   * Opens a projector with the vocabulary of a model's file and encodes a few images. A bad file may end this process.
   */
  tryProjector(model: string, options: NativeProjectorOptions): Promise<void>;
  loadModel(options: NativeLoadOptions): Promise<NativeModel>;
  /** Writes a GGUF with ggml, for types that only ggml can quantize to (`encodeValues`). */
  writeGguf(path: string, file: GgufFile): Promise<void>;
  /** Null when the file is locked; else a function that releases the lock. */
  lockFile(path: string): (() => void) | null;
  /** Architectures that can be trained, as GGUF files name them. */
  trainableArchitectures(): string[];
  /** Rejects with what loading a file for an adapter would; reads only its header. contextSize 0: the default. */
  checkTrainable(path: string, contextSize: number): Promise<void>;
  /** The value of `flashAttention: "auto"`, for any device. */
  chooseFlashAttention(onCpu: boolean, trainable: boolean, kvType: string, headSize: number): boolean;
  /** Names of the types, from most to least exact. */
  quantizeTypes(): string[];
  /** llama_model_quantize; threads 0: all. */
  quantizeGguf(input: string, output: string, type: string, threads: number): Promise<void>;
}
