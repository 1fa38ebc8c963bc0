/** Shapes of real models, from their public configurations. */
export interface ModelShape {
  architecture: "qwen2" | "qwen3" | "llama";
  embedding: number;
  layers: number;
  heads: number;
  kvHeads: number;
  headSize: number;
  feedForward: number;
  vocabulary: number;
  context: number;
  ropeBase: number;
  normEpsilon: number;
  /** Biases of q, k and v. */
  biases: boolean;
  /** Norms of each head's queries and keys. */
  headNorms?: boolean;
  /** `models/ggml-vocab-<name>.gguf` of llama.cpp's source; it has exactly `vocabulary` tokens. */
  bundledVocabulary: string;
}

export const shapes = {
  "qwen2.5-0.5b": {
    architecture: "qwen2",
    embedding: 896,
    layers: 24,
    heads: 14,
    kvHeads: 2,
    headSize: 64,
    feedForward: 4864,
    vocabulary: 151_936,
    context: 32_768,
    ropeBase: 1_000_000,
    normEpsilon: 1e-6,
    biases: true,
    bundledVocabulary: "qwen2",
  },
  "qwen3-4b": {
    architecture: "qwen3",
    embedding: 2560,
    layers: 36,
    heads: 32,
    kvHeads: 8,
    headSize: 128,
    feedForward: 9728,
    vocabulary: 151_936,
    context: 40_960,
    ropeBase: 1_000_000,
    normEpsilon: 1e-6,
    biases: false,
    headNorms: true,
    bundledVocabulary: "qwen2",
  },
  // Its own vocabulary is not in llama.cpp's source; StarCoder's has the same 49,152 tokens and the same kind of BPE.
  "smollm2-135m": {
    architecture: "llama",
    embedding: 576,
    layers: 30,
    heads: 9,
    kvHeads: 3,
    headSize: 64,
    feedForward: 1536,
    vocabulary: 49_152,
    context: 8192,
    ropeBase: 100_000,
    normEpsilon: 1e-5,
    biases: false,
    bundledVocabulary: "starcoder",
  },
} as const satisfies Record<string, ModelShape>;

export type ModelName = keyof typeof shapes;
