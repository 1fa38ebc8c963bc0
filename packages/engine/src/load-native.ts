import { availableParallelism } from "node:os";
import { ConfigError } from "@cria/core";
import { resolveModel } from "@cria/hub";
import { prepareDevice } from "./cuda.js";
import { callNative, getAddon } from "./native.js";
import type { NativeLoadOptions, NativeModel } from "./native-types.js";

export interface LoraOptions {
  /** Rank of A and B, 1 to 4096. Default 8. */
  rank?: number;
  /** The update is scaled by alpha / rank. Default 16. */
  alpha?: number;
  /** Short tensor names: attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down, output. Default: all but output. */
  targets?: string[];
  /**
   * An adapter GGUF to start from, of Cria's, or made by llama.cpp's convert_lora_to_gguf.py. Its rank, alpha and targets
   * count; those given beside it must be the same.
   */
  path?: string;
}

export interface LoadModelOptions {
  /** A GGUF file, or its address on a hub, as `hf:Qwen/Qwen3-0.6B-GGUF:Q8_0`: see `resolveModel`. */
  path: string;
  /**
   * "auto" (default) takes CUDA when its driver, cuBLAS, a GPU and the package @node-llama-cpp/linux-x64-cuda are there and
   * the model can be trained there as asked, else the CPU. `inspectCuda()` says what is missing. Over F32 weights
   * gradients of a GPU differ by 1e-3 to 4e-3, as it multiplies TF32; over quantised ones by more (see "Devices" in the README).
   */
  device?: "auto" | "cpu" | "cuda";
  /** Layers on the GPU; default all, as training needs. */
  gpuLayers?: number;
  /**
   * Most tokens of one sequence. Default: the model's training context, at most 4096. Loading allocates the KV cache of all
   * `maxSequences` slots: of each token and layer the keys and values of every KV head, in `kvType`.
   */
  contextSize?: number;
  /** Sequences resident in the KV cache at once, 1 to 256. Default 8. */
  maxSequences?: number;
  /**
   * Default: what the process may use. What `train` and `score` compute on the CPU does not depend on it, bit for bit, nor
   * does what a `deterministic` model samples. (On ARM ggml's own products of quantised weights may round otherwise with
   * another number of threads.)
   */
  threads?: number;
  /**
   * Type of cached keys and values. Default "f32" for a trainable model, else "f16". On the CPU, over F32 weights and without
   * flash attention, the logprobs of decoding and of `score` then differ by the order of sums alone, less than 1e-5; with
   * "f16", or with flash attention, which rounds keys and values to it, by 2e-2 where keys are small, and by far more where
   * they are not: with key biases of 150 llama.cpp's decoding was off by 0.5 nats on average. Over other weights a last bit can
   * flip the rounding of an activation: 2e-3 over F16, 5e-3 over BF16 and 8-bit blocks, 2e-2 over K-quants have been seen.
   */
  kvType?: "f32" | "f16" | "q8_0";
  /**
   * llama.cpp's flash attention for decoding. "auto" (default) is a rule of shape and device: yes for a `kvType` of "q8_0",
   * which needs it, and on a GPU for a model that only generates, with F16 keys and values and heads of 64, 80, 96, 112,
   * 128 or 256; else no. On the CPU the engine's own attention, which is the trainer's, takes its place.
   */
  flashAttention?: boolean | "auto";
  lora?: LoraOptions | null;
  /** What `train` updates. Default "lora" when `lora` is given, else "none". */
  trainable?: "lora" | "full" | "none";
  /** Seed of a new adapter's values. Default 0. */
  seed?: number;
  /**
   * With a seed given, results then depend on the sequence's tokens alone, bit for bit: not on timing, threads, neighbours,
   * or whether its prefix was evaluated for it or for another (see `prefixReuse`). K-quantised models then evaluate at
   * least 8 rows at a time. Models with recurrent layers keep this with F32, F16 and Q8_0 weights on a CPU. Default true.
   */
  deterministic?: boolean;
  /**
   * A prompt takes over the KV of any sequence, running, idle or disposed of, that begins with the same tokens; of equal
   * prompts that arrive together one is evaluated. Default true. A deterministic model shares any prefix where each row
   * of a batch is computed alike in all batches: on CPUs, without flash attention or experts (other CPUs than x86:
   * with F32 and F16 weights). Elsewhere it shares whole prefill chunks (`prefillChunk`) only, which no sampled
   * token is part of. False: a sequence shares with its forks only.
   */
  prefixReuse?: boolean;
  /** Bytes for activations kept between forward and backward; beyond it layers are recomputed. Default 2 GiB. */
  trainingMemory?: number;
  /** Most prompt tokens of one sequence evaluated between two decode steps. Default 512. */
  prefillChunk?: number;
  /** Host bytes for the KV of evicted sequences; beyond it they are recomputed. Default 1 GiB. */
  swapBytes?: number;
  /**
   * The projector that makes the model see images: the GGUF beside the model's that llama.cpp calls mmproj, or its address on a
   * hub, as `hf:ggml-org/SmolVLM-256M-Instruct-GGUF:F16`: see `resolveProjector`. Absent: text alone.
   */
  mmproj?: string;
  /** Vectors of an image, at least and at most, where the projector takes images of any size. Default: as its file says. */
  imageMinTokens?: number;
  imageMaxTokens?: number;
  /**
   * Bytes of images' vectors and files that stay in memory when nothing uses them; beyond it those unused longest are
   * dropped, and encoded again when they are needed. Default 512 MiB.
   */
  imageMemory?: number;
  /**
   * Most bytes that encoding one image may take, by the engine's estimate; one that takes more is refused before it is decoded
   * ("engine/bad-image"). Default 2 GiB.
   */
  imageEncodeMemory?: number;
}

const KNOWN_OPTIONS = new Set([
  "path",
  "device",
  "gpuLayers",
  "contextSize",
  "maxSequences",
  "threads",
  "kvType",
  "flashAttention",
  "lora",
  "trainable",
  "seed",
  "deterministic",
  "prefixReuse",
  "trainingMemory",
  "prefillChunk",
  "swapBytes",
  "mmproj",
  "imageMinTokens",
  "imageMaxTokens",
  "imageMemory",
  "imageEncodeMemory",
]);

/**
 * `emulatedDevice` is for checks alone.
 * @throws EngineError, HubError for an address that cannot be followed, ConfigError for an unknown option.
 */
export async function loadNative(
  options: LoadModelOptions,
  { valueHead, emulatedDevice }: Pick<NativeLoadOptions, "valueHead" | "emulatedDevice"> = {},
): Promise<NativeModel> {
  for (const key of Object.keys(options)) {
    if (!KNOWN_OPTIONS.has(key)) {
      throw new ConfigError("is not an option", {
        code: "config/unknown-option",
        subject: `loadModel.${key}`,
        expected: [...KNOWN_OPTIONS].join(", "),
      });
    }
  }
  const addon = getAddon();
  const trainable = options.trainable ?? (options.lora ? "lora" : "none");
  prepareDevice(options.device ?? "auto");
  const path = await resolveModel(options.path);
  const model = await callNative(() =>
    addon.loadModel({
      threads: availableParallelism(),
      kvType: trainable === "none" ? "f16" : "f32",
      ...dropUndefined(options),
      path,
      trainable,
      valueHead,
      emulatedDevice,
    }),
  );
  const { notice } = model.info();
  if (notice !== null) process.emitWarning(`${options.path} ${notice}`, { code: "CRIA_DEVICE" });
  return model;
}

function dropUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}
