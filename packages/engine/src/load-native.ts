import { availableParallelism } from "node:os";
import { ConfigError, type Device } from "@cria/core";
import { resolveModel } from "@cria/hub";
import { prepareDevice } from "./backends.js";
import { callNative, getAddon } from "./native.js";
import type { NativeLoadOptions, NativeModel } from "./native-types.js";

export interface LoraOptions {
  /** Rank of A and B, 1 to 4096. Default 8. */
  rank?: number;
  /** The update is scaled by alpha / rank. Default 16. */
  alpha?: number;
  /**
   * Short tensor names: attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down, output; of LFM2 also
   * shortconv.in_proj, shortconv.out_proj; of Qwen3.5 attn_qkv, attn_gate, ssm_alpha, ssm_beta, ssm_out; of Granite's hybrids ssm_in, ssm_out; of Phi 3 attn_qkv in place of the first three, and no ffn_gate, which is
   * part of its ffn_up; with experts ffn_gate_exps, ffn_up_exps, ffn_down_exps and the router's ffn_gate_inp in place of
   * the feed-forward's. Default: all except output, experts and router.
   */
  targets?: string[];
  /**
   * An adapter GGUF to start from, made by Cria or by llama.cpp's convert_lora_to_gguf.py. Its rank, alpha and targets
   * are used; options given as well must be equal to them.
   */
  path?: string;
}

export interface LoadModelOptions {
  /** A GGUF file, or its address on a hub such as `hf:Qwen/Qwen3-0.6B-GGUF:Q8_0`: see `resolveModel`. */
  path: string;
  /**
   * "auto" (default) uses CUDA if its driver, cuBLAS, a GPU and the package @node-llama-cpp/linux-x64-cuda are
   * available and the model can be trained there as requested, else the CPU. "vulkan" needs a driver of Vulkan and the
   * package @node-llama-cpp/linux-x64-vulkan, "metal" a Mac; "auto" never takes these. `inspectBackend` reports the
   * missing parts.
   * Over F32 weights the gradients of CUDA differ by 1e-3 to 4e-3, because it multiplies TF32; over quantised ones by
   * more (docs/devices.md).
   */
  device?: Device;
  /** Number of layers on the GPU; default all, which training requires. */
  gpuLayers?: number;
  /**
   * Most tokens of one sequence. Default: the model's training context, at most 4096. Loading allocates the KV cache of
   * all `maxSequences` slots: the keys and values of every KV head, for each token and layer, in `kvType`.
   */
  contextSize?: number;
  /**
   * Most tokens of a sequence that is only scored or trained on, if more than `contextSize`. A model with factors of
   * RoPE for long contexts (LongRoPE, as Phi 3's) takes those beyond its original context, and for all sequences: they
   * are chosen here, once. Default: `contextSize`.
   */
  scoredContextSize?: number;
  /** Sequences resident in the KV cache at once, 1 to 256. Default 8. */
  maxSequences?: number;
  /**
   * Default: the cores that the process may use. `train` and `score` on the CPU give the same bits with any number, and
   * so does sampling of a `deterministic` model. (On ARM ggml's own products of quantised weights may round differently
   * with another number of threads.)
   */
  threads?: number;
  /**
   * Type of cached keys and values. Default "f32" for a trainable model, else "f16". With "f32", `deterministic`, no
   * flash attention, and weights whose products are the engine's (docs/determinism.md), the logprobs of decoding and of
   * `score` are equal to the last bit on a CPU. Models with delta nets or Mamba-2 differ by less than 1e-5
   * over F32 weights; over others a last bit can change the rounding of an activation, and differences of 2e-2 have been
   * seen. With "f16", or with flash attention, which rounds keys and
   * values to it, they differ by 2e-2 if keys are small, and by far more if not: with key biases of 150 in place of 1
   * eleven times as much in a small random model, and llama.cpp's decoding was off by 0.5 nats on average.
   */
  kvType?: "f32" | "f16" | "q8_0";
  /**
   * llama.cpp's flash attention for decoding. "auto" (default) decides by shape and device: on for a `kvType` of
   * "q8_0", which needs it, and on a GPU for a model that only generates, with F16 keys and values and a head size of
   * 64, 80, 96, 112, 128 or 256; else off. On the CPU the engine's own attention, which the trainer also uses, replaces
   * it.
   */
  flashAttention?: boolean | "auto";
  lora?: LoraOptions | null;
  /** The weights that `train` updates. Default "lora" when `lora` is given, else "none". */
  trainable?: "lora" | "full" | "none";
  /** Seed of a new adapter's values. Default 0. */
  seed?: number;
  /**
   * If a seed is given, results then depend only on the sequence's tokens, bit for bit: not on timing, threads,
   * neighbours, or which request evaluated its prefix (see `prefixReuse`). Weights that the engine's products do
   * not cover (docs/determinism.md) are evaluated by two or eight rows at least; for models with recurrent layers this
   * holds only over covered ones, on a CPU. Default true.
   */
  deterministic?: boolean;
  /**
   * A prompt takes over the KV of any sequence, running, idle or disposed of, that begins with the same tokens; of
   * equal prompts that arrive together one is evaluated. Default true. A deterministic model shares any prefix if each
   * row is computed in the same way in all batches: on CPUs, without flash attention (with experts, and on CPUs other
   * than x86: over covered weights). Otherwise it shares only whole prefill chunks (`prefillChunk`), which contain no
   * sampled token. False: a sequence shares only with its forks.
   */
  prefixReuse?: boolean;
  /**
   * A decode step also evaluates tokens that earlier texts suggest behind each sequence's last one, where this saves
   * time: what a sibling or the last epoch sampled, a prompt, a tool's answer. Sampling decides, so results do not change. Only where
   * each row is computed in the same way in all batches (see `prefixReuse`), without recurrent layers, and over weights
   * that the engine's products cover, or without `deterministic`. On the CPU, while at most four sequences decode. "always"
   * evaluates all that is suggested, whatever that costs: for tests. Default true.
   */
  drafting?: boolean | "always";
  /** Bytes for activations kept between forward and backward; beyond it layers are recomputed. Default 2 GiB. */
  trainingMemory?: number;
  /** Most prompt tokens of one sequence evaluated between two decode steps. Default 512. */
  prefillChunk?: number;
  /** Host bytes for the KV of evicted sequences; beyond it they are recomputed. Default 1 GiB. */
  swapBytes?: number;
  /**
   * The projector that lets the model see images: a second GGUF that llama.cpp calls mmproj, or its address on a hub
   * such as `hf:ggml-org/SmolVLM-256M-Instruct-GGUF:F16`: see `resolveProjector`. Absent: text only.
   */
  mmproj?: string;
  /**
   * Minimum number of vectors of an image, and `imageMaxTokens` the maximum, for projectors that take images of any
   * size. Default: the file's limits.
   */
  imageMinTokens?: number;
  imageMaxTokens?: number;
  /**
   * Bytes of images' vectors and files that stay in memory without users. Beyond it the least recently used are
   * dropped, and encoded again when needed. Default 512 MiB.
   */
  imageMemory?: number;
  /**
   * Most bytes for encoding one image, by the engine's estimate. An image that needs more is refused before it is
   * decoded ("engine/bad-image"). Default 2 GiB.
   */
  imageEncodeMemory?: number;
}

const KNOWN_OPTIONS = new Set([
  "path",
  "device",
  "gpuLayers",
  "contextSize",
  "scoredContextSize",
  "maxSequences",
  "threads",
  "kvType",
  "flashAttention",
  "lora",
  "trainable",
  "seed",
  "deterministic",
  "prefixReuse",
  "drafting",
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
 * `emulatedDevice` is only for checks.
 * @throws EngineError, HubError for an address that cannot be resolved, ConfigError for an unknown option.
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
        received: key,
        remedy: "correct or remove it",
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
