/**
 * The whole contract of the native addon (native/src/binding). Arguments are checked there; errors arrive as JS errors
 * with `code`, `subject`, `expected`, `received` and `remedy`.
 */
import type { GenerateResult, ImagePiece, ModelInfo, SpecialToken } from "@cria/core";

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
  | "q4_K"
  | "q5_K"
  | "q6_K";

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
  /** As in ModelInfo. */
  cpuKernel: string;
  ggmlBuild: string;
  /** What CRIA_CPU_KERNEL may name on this machine, the best first. */
  usableCpuKernels: string[];
  devices: string[];
}

export interface NativeLoadOptions {
  path: string;
  device?: string;
  gpuLayers?: number;
  contextSize?: number;
  maxSequences?: number;
  threads?: number;
  kvType?: string;
  flashAttention?: boolean | "auto";
  lora?: { rank?: number; alpha?: number; targets?: string[]; path?: string } | null;
  trainable?: string;
  seed?: number;
  deterministic?: boolean;
  prefixReuse?: boolean;
  prefillChunk?: number;
  swapBytes?: number;
  trainingMemory?: number;
  /** A critic: forward gives values in the place of logprobs, backward takes their gradient. */
  valueHead?: boolean;
  /**
   * For checks without a GPU: training runs on the CPU as it would on a device, by ggml's operations or by a library of
   * our device kernels, and refuses the operations that are named as ggml names them.
   */
  emulatedDevice?: { kernels?: string; refused?: string[] };
}

export interface NativeGenerateParams {
  /** 0 evaluates the delta only. */
  maxTokens: number;
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  seed: number;
  stopTokens: Int32Array;
  stopStrings: string[];
  grammar?: string;
  topLogprobs: number;
}

export interface NativeGenerateResult extends Omit<GenerateResult, "topLogprobs"> {
  /** Where `topLogprobs` was asked for: so many for each sampled token, -1 where a grammar allowed fewer. */
  topTokens?: Int32Array;
  topLogprobs?: Float32Array;
}

/** Rows of equal length, each a tree of tokens; see native/include/cria/trainer.h. Arrays are rows * rowLength long. */
export interface NativeMicroBatch {
  rows: number;
  rowLength: number;
  tokens: Int32Array;
  positions: Int32Array;
  /** Up to which place in the row, exclusive, tokens continue each token: i sees j where j <= i < ends[j]. 0 for padding. */
  ends: Int32Array;
  /** Where the hidden state lies that predicts each scored token, and that token. */
  sources: Int32Array;
  targets: Int32Array;
  temperature: number;
  adapter: boolean;
  /** For the ids from the vocabulary's end on, in this batch's own numbering: the ids of their vectors. Absent: there are none. */
  vectors?: Int32Array;
}

export interface NativeScores {
  logprobs: Float32Array;
  entropy: Float32Array;
  /** Of the squared probabilities of each distribution, when asked for. */
  sumSquares?: Float32Array;
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
  /** Rows decoded only to keep a batch in one piece. */
  paddingTokens: number;
  /** Sequences moved to other KV slots, so that those that decode lie together. */
  movedSequences: number;
  /** Calls of llama_decode, for prompts and for sampling. */
  decodeCalls: number;
  evictions: number;
  restores: number;
  recomputedTokens: number;
  /** Inside llama_decode. */
  llamaSeconds: number;
  /** Whole steps: scheduling, llama_decode, sampling, stops; without waiting for work. */
  busySeconds: number;
  /** Sequences that exist now, those of them with KV in the cache, requests in flight, bytes of KV saved outside the cache. */
  sequences: number;
  residentSequences: number;
  requests: number;
  swappedBytes: number;
}

export interface NativeProjectorOptions {
  /** The path of libcria-vision.so. */
  library: string;
  path: string;
  threads: number;
  /** Tokens of an image at least and at most, where the projector takes images of any size; 0: as the file says. */
  minTokens: number;
  maxTokens: number;
}

/** A projector that libcria-vision.so has opened for a model. Its work runs on a thread of its own, call after call. */
export interface NativeProjector {
  info(): {
    type: string;
    /** Floats of a vector: the model's embedding size, times 1 + its deep layers for Qwen3-VL. */
    vectorSize: number;
  };
  /** How an image of this size stands in a prompt, in microseconds. Throws for one that the projector cannot take. */
  layout(width: number, height: number): ImagePiece[];
  /**
   * A PNG, JPEG, BMP or GIF, decoded under the limit of pixels and turned as its orientation says (EXIF's, 1 to 8): its vectors,
   * one behind the other.
   */
  encode(file: Uint8Array, maxPixels: number, orientation: number): Promise<{ vectors: Float32Array }>;
  /** Its pixels, over white where they are transparent. */
  decode(
    file: Uint8Array,
    maxPixels: number,
    orientation: number,
  ): Promise<{ width: number; height: number; rgb: Uint8Array }>;
  dispose(): Promise<void>;
}

export interface NativeModel {
  /** Opens a projector over this model's vocabulary and embedding size. */
  openProjector(options: NativeProjectorOptions): Promise<NativeProjector>;
  /**
   * Makes ids of vectors known: `count` from `first` on, which must be where the last definition ended, or the vocabulary. They may
   * stand in sequences at once, and stay known. `columns` and `rows` as in the layout.
   */
  defineVectors(first: number, count: number, columns: number, rows: number): void;
  /** Gives the values of ids that were defined together. A copy is kept until they are dropped. */
  holdVectors(first: number, values: Float32Array): void;
  /** Forgets values; no request in flight and no micro-batch may need them. */
  dropVectors(first: number): void;
  /** `notice`: a text for the user, for example that device "auto" does not use a GPU that is there. */
  info(): ModelInfo & { chatTemplate: string | null; notice: string | null };
  tokenize(text: string, special: boolean): Int32Array;
  /** The same on the job thread. */
  tokenizeAside(text: string, special: boolean): Promise<Int32Array>;
  detokenize(tokenIds: Int32Array, special: boolean): string;
  /** Control, unknown and user-defined tokens, by id. */
  specialTokens(): SpecialToken[];
  createSequence(): number;
  forkSequence(sequence: number): number;
  disposeSequence(sequence: number): void;
  /** Forgets the tokens; the KV stays until the room is needed. */
  resetSequence(sequence: number): void;
  /** Throws what `generate` throws of a request of so many new tokens, before their vectors are there. */
  checkFits(sequence: number, deltaLength: number, maxTokens: number): void;
  sequenceTokens(sequence: number): Int32Array;
  generate(
    sequence: number,
    delta: Int32Array,
    params: NativeGenerateParams,
    onText?: (text: string) => void,
  ): { request: number; promise: Promise<NativeGenerateResult> };
  abort(request: number): void;
  flush(): Promise<void>;
  schedulerStats(): SchedulerStats;
  /** With `keep`, backward may follow. */
  forward(batch: NativeMicroBatch, keep: boolean, withSumSquares?: boolean): Promise<NativeScores>;
  backward(dLogprobs: Float32Array, dEntropy: Float32Array): Promise<void>;
  step(optimizer: NativeOptimizer): Promise<{ gradNorm: number; stepped: boolean }>;
  zeroGradients(): Promise<void>;
  abortTraining(): void;
  tensors(): TensorInfo[];
  readTensor(name: string, what: TensorPart): Promise<Float32Array>;
  writeTensor(name: string, what: TensorPart, values: Float32Array): Promise<void>;
  stepCount(): number;
  setStepCount(count: number): void;
  /**
   * Whether training's attention computes only pairs of tokens of which one sees the other, rather than all pairs of a row;
   * false for a model that only generates.
   */
  attendsBlockwise(): boolean;
  /** Layers of the last kept forward whose activations were not recomputed. */
  keptLayers(): number;
  saveAdapter(path: string): Promise<void>;
  saveModel(path: string): Promise<void>;
  dispose(): Promise<void>;
}

export interface NativeAddon {
  runtimeInfo(): NativeRuntimeInfo;
  /** Looks for what CUDA needs, in order, and loads libggml-cuda from a folder into this process when all is there. */
  loadCuda(options: {
    folder?: string;
    /** Folders of libraries to look into after the system's own. */
    search: string[];
  }): { name: string; found: string | null; problem: string | null }[];
  /** Loads libcria-vision.so; gives the release of llama.cpp that it was compiled for, which must be the addon's. */
  loadVision(library: string): string;
  /** Opens a projector over the vocabulary of a model's file and encodes a few images. What ends the process ends it here. */
  tryProjector(model: string, options: NativeProjectorOptions): Promise<void>;
  loadModel(options: NativeLoadOptions): Promise<NativeModel>;
  /** For types that ggml alone can quantize to (`encodeValues`). */
  writeGguf(path: string, file: GgufFile): Promise<void>;
  /** Null when the file is locked; else what ends the lock. */
  lockFile(path: string): (() => void) | null;
  /** Names of the types, the most exact first. */
  /** What `flashAttention: "auto"` means, for any device. */
  chooseFlashAttention(onCpu: boolean, trainable: boolean, kvType: string, headSize: number): boolean;
  quantizeTypes(): string[];
  /** llama_model_quantize; threads 0: all. */
  quantizeGguf(input: string, output: string, type: string, threads: number): Promise<void>;
}
