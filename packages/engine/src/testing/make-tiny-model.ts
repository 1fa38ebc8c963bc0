import { writeGguf } from "../gguf-files/write-gguf.js";
import type { GgufFile, GgufTensor, GgufTensorType, GgufValue } from "../native-types.js";

/** Architectures of models without images. */
export const textArchitectures = [
  "llama",
  "qwen2",
  "qwen3",
  "gemma3",
  "smollm3",
  "granite",
  "lfm2",
  "phi3",
  "mistral3",
  "qwen35",
  "granitehybrid",
  "qwen3moe",
  "gpt-oss",
] as const;

/**
 * A random model of a few thousand weights, for tests: real file, real vocabulary, any supported architecture and type.
 */
export interface TinyModelOptions {
  architecture?: (typeof textArchitectures)[number] | "qwen2vl" | "qwen3vl";
  type?: GgufTensorType;
  embedding?: number;
  layers?: number;
  heads?: number;
  kvHeads?: number;
  headSize?: number;
  feedForward?: number;
  tied?: boolean;
  contextLength?: number;
  /** Minimum number of tokens; those beyond bytes, ChatML's and the options below are unused. */
  vocabulary?: number;
  /** Additional control tokens, for example those that a projector puts around an image. */
  controlTokens?: readonly string[];
  /** Default: ChatML. */
  chatTemplate?: string;
  /** Words of two tokens in the form of merges, for example "Ċ Ċ" for an empty line. */
  merges?: readonly string[];
  /** For qwen3vl: number of layers after which a part of an image's vectors is added. Default 2. */
  deepLayers?: number;
  /** For llama: the factors of RoPE that Llama 3.1 and later have. Default false. */
  ropeFactors?: boolean;
  /**
   * For phi3: tokens beyond which its factors of RoPE for long contexts apply; default 256. For mistral3: queries grow
   * whenever so many tokens are passed, and YaRN began with so many; default 8. For gpt-oss: YaRN began with so many;
   * default 4096, which puts a head's 16 dimensions on both sides of llama.cpp's bounds and between them.
   */
  originalContext?: number;
  /**
   * For gemma3 and gpt-oss: most tokens that a token sees in every other layer, itself included; default 6. For phi3, of
   * all layers; default none.
   */
  slidingWindow?: number;
  /**
   * Experts of every layer, and how many of them a token chooses. Default for qwen3moe and gpt-oss: 4 and 2. Others have
   * none; llama and granitehybrid with some are models that llama.cpp loads and Cria does not train.
   */
  experts?: { count: number; used: number };
  seed?: number;
  /** Scale of the embedding; larger makes distributions sharper. */
  embeddingScale?: number;
}

/** Standard normals, deterministic (mulberry32 and Box-Muller). */
export function makeNormals(seed: number): () => number {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Byte tokens, which every tiny model has: deterministic. */
export function randomTokens(count: number, seed: number): number[] {
  const normal = makeNormals(seed);
  return Array.from({ length: count }, () => Math.abs(Math.floor(normal() * 997)) % 256);
}

/** Values of full-size tensors repeat, with a period that no axis has: drawing each would take minutes. */
function drawValues(count: number, draw: () => number): Float32Array {
  const data = new Float32Array(count);
  const drawn = Math.min(count, 262_139);
  for (let i = 0; i < drawn; i++) data[i] = draw();
  for (let have = drawn; have < count; have *= 2) data.copyWithin(have, 0, Math.min(have, count - have));
  return data;
}

/** GPT-2's printable replacements for bytes, in byte order. */
function byteTokens(): string[] {
  const printable = (b: number) => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  let extra = 0;
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(printable(b) ? b : 256 + extra++));
}

const SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const CHATML =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/** Number of layers of a tiny qwen3vl whose outputs an image's vectors are added to. */
export const DEEP_LAYERS = 2;

/**
 * Tokens that a convolution of lfm2 sees; its state is those before the newest. Every other layer has one, starting
 * with the first.
 */
const CONVOLUTION_TOKENS = 3;

/**
 * The gated delta nets of qwen35, in every other layer, starting with the first: queries and keys of two heads, a state
 * of 16 x 16 numbers for each head of values, and a convolution over four tokens.
 */
const DELTA = { size: 16, keyHeads: 2, taps: 4 };

/**
 * Mamba-2's layers of granitehybrid, in every other layer, starting with the first: values of four numbers a head, two
 * heads of queries and keys, a state of 16 numbers for each value, and a convolution over four tokens.
 */
const MAMBA = { valueSize: 4, keyHeads: 2, size: 16, taps: 4 };

/**
 * Dimension pairs of a head that follow an image's time, row and column, divided as in published models of these
 * architectures.
 */
const ROPE_SECTIONS = { qwen2vl: [2, 3, 3, 0], qwen3vl: [4, 2, 2, 0], qwen35: [2, 1, 1, 0] };

const ROPE_BASE = 10000;

/** Every second layer of gemma3 sees all tokens, as every sixth of published models does. */
const WINDOW_PATTERN = 2;

/** Number of layers, if not 2. The fourth layer of smollm3 is the first without RoPE. */
const LAYERS: Record<string, number> = { qwen3vl: 3, gemma3: 3, smollm3: 4, lfm2: 4, qwen35: 4, granitehybrid: 4 };

/** By Llama 3's rule, with its parameters but for a context of 64 tokens before it was extended. */
function makeRopeFactors(headSize: number): Float32Array {
  const [factor, low, high, context] = [8, 1, 4, 64];
  return Float32Array.from({ length: headSize / 2 }, (_, i) => {
    const turns = context / (2 * Math.PI * ROPE_BASE ** ((2 * i) / headSize));
    const share = Math.min(1, Math.max(0, (turns - low) / (high - low)));
    return 1 / ((1 - share) / factor + share);
  });
}

/** Phi 3 and 4-mini rotate a part of each head, by factors for contexts of the original length and for longer ones. */
function describePhiRope(headSize: number, contextLength: number, originalContext: number) {
  const dimensions = headSize * 0.75;
  const makeFactors = (most: number) =>
    Float32Array.from({ length: dimensions / 2 }, (_, i) => 1 + (most - 1) * (i / (dimensions / 2)) ** 2);
  const scale = contextLength / originalContext;
  return {
    dimensions,
    short: makeFactors(1.5),
    long: makeFactors(12),
    attnFactor: scale > 1 ? Math.sqrt(1 + Math.log(scale) / Math.log(originalContext)) : 1,
  };
}

export function describeTinyModel(options: TinyModelOptions = {}): GgufFile {
  const {
    architecture = "qwen3",
    type = "f32",
    embedding = architecture.startsWith("qwen2") || ["lfm2", "phi3", "granitehybrid"].includes(architecture) ? 64 : 32,
    layers = LAYERS[architecture] ?? 2,
    heads = 4,
    kvHeads = 2,
    headSize = 16,
    feedForward = 48,
    tied = architecture.startsWith("qwen3") ||
      ["gemma3", "smollm3", "granite", "granitehybrid", "lfm2", "phi3"].includes(architecture),
    contextLength = 512,
    vocabulary = 0,
    controlTokens = [],
    chatTemplate = CHATML,
    merges = [],
    deepLayers = DEEP_LAYERS,
    ropeFactors = false,
    originalContext = ({ mistral3: 8, "gpt-oss": 4096 } as Record<string, number>)[architecture] ?? 256,
    slidingWindow = architecture === "phi3" ? 0 : 6,
    experts = { count: 4, used: 2 },
    seed = 1,
    embeddingScale = 1,
  } = options;
  const normal = makeNormals(seed);
  const tensors: GgufTensor[] = [];
  const add = (name: string, shape: number[], scale: number, mean = 0) => {
    const data = drawValues(
      shape.reduce((a, b) => a * b, 1),
      () => mean + scale * normal(),
    );
    // Norms, biases, convolutions, routers and numbers of heads stay F32, as in every real file.
    tensors.push({
      name,
      type: shape.length >= 2 && !/\.conv\.|conv1d|norm|ssm_[ad]$|ffn_gate_inp|bias/.test(name) ? type : "f32",
      shape,
      data,
    });
  };
  const control = [...SPECIAL_TOKENS, ...controlTokens];
  const tokens = [...byteTokens(), ...control, ...merges.map((merge) => merge.replace(" ", ""))];
  const used = tokens.length;
  while (tokens.length < vocabulary || tokens.length % 32) tokens.push(`[PAD${tokens.length}]`);
  add("token_embd.weight", [embedding, tokens.length], embeddingScale);
  const hasConvolution = (layer: number) => architecture === "lfm2" && layer % 2 === 0;
  const hasDeltaNet = (layer: number) => architecture === "qwen35" && layer % 2 === 0;
  const deltaHeads = embedding < 256 ? 4 : 16; // of values; their numbers divide into blocks of every type
  const hasMamba = (layer: number) => architecture === "granitehybrid" && layer % 2 === 0;
  const isGptOss = architecture === "gpt-oss";
  const hasExperts = architecture === "qwen3moe" || isGptOss || options.experts !== undefined;
  const hasAttention = (layer: number) => !hasConvolution(layer) && !hasDeltaNet(layer) && !hasMamba(layer);
  const inner = 2 * embedding; // values of a layer of Mamba-2, as llama.cpp demands
  const mambaHeads = inner / MAMBA.valueSize;
  for (let i = 0; i < layers; i++) {
    const name = (part: string) => `blk.${i}.${part}`;
    const linear = (part: string, inputs: number, outputs: number) =>
      add(name(part), [inputs, outputs], 1.2 / Math.sqrt(inputs));
    add(name("attn_norm.weight"), [embedding], 0.1, 1);
    if (hasConvolution(i)) {
      add(name("shortconv.conv.weight"), [CONVOLUTION_TOKENS, embedding], 0.6);
      linear("shortconv.in_proj.weight", embedding, 3 * embedding);
      linear("shortconv.out_proj.weight", embedding, embedding);
    } else if (hasDeltaNet(i)) {
      const { size, keyHeads, taps } = DELTA;
      const [channels, outputs] = [size * (2 * keyHeads + deltaHeads), size * deltaHeads];
      linear("attn_qkv.weight", embedding, channels);
      linear("attn_gate.weight", embedding, outputs);
      add(name("ssm_conv1d.weight"), [taps, channels], 0.6);
      linear("ssm_alpha.weight", embedding, deltaHeads);
      linear("ssm_beta.weight", embedding, deltaHeads);
      add(name("ssm_dt.bias"), [deltaHeads], 0.5, -1);
      add(name("ssm_a"), [deltaHeads], 0.2, -1);
      add(name("ssm_norm.weight"), [size], 0.1, 1);
      linear("ssm_out.weight", outputs, embedding);
    } else if (hasMamba(i)) {
      const { size, keyHeads, taps } = MAMBA;
      const channels = inner + 2 * keyHeads * size;
      linear("ssm_in.weight", embedding, inner + channels + mambaHeads);
      add(name("ssm_conv1d.weight"), [taps, channels], 0.6);
      add(name("ssm_conv1d.bias"), [channels], 0.2);
      add(name("ssm_dt.bias"), [mambaHeads], 0.5, -1);
      add(name("ssm_a"), [1, mambaHeads], 0.2, -1);
      add(name("ssm_d"), [1, mambaHeads], 0.3, 1);
      add(name("ssm_norm.weight"), [inner / keyHeads, keyHeads], 0.1, 1);
      linear("ssm_out.weight", inner, embedding);
    } else if (architecture === "phi3") {
      linear("attn_qkv.weight", embedding, (heads + 2 * kvHeads) * headSize);
    } else {
      // Behind each head's queries, qwen35 has a gate of its output.
      linear("attn_q.weight", embedding, heads * headSize * (architecture === "qwen35" ? 2 : 1));
      linear("attn_k.weight", embedding, kvHeads * headSize);
      linear("attn_v.weight", embedding, kvHeads * headSize);
    }
    if (architecture.startsWith("qwen2") || isGptOss) {
      add(name("attn_q.bias"), [heads * headSize], 0.3);
      add(name("attn_k.bias"), [kvHeads * headSize], 0.3);
      add(name("attn_v.bias"), [kvHeads * headSize], 0.3);
    }
    const hasHeadNorms = architecture.startsWith("qwen3") || ["gemma3", "lfm2"].includes(architecture);
    if (hasHeadNorms && hasAttention(i)) {
      add(name("attn_q_norm.weight"), [headSize], 0.1, 1);
      add(name("attn_k_norm.weight"), [headSize], 0.1, 1);
    }
    if (hasAttention(i)) linear("attn_output.weight", heads * headSize, embedding);
    if (isGptOss) {
      add(name("attn_output.bias"), [embedding], 0.3);
      add(name("attn_sinks.weight"), [heads], 1);
    }
    if (architecture === "gemma3") {
      add(name("post_attention_norm.weight"), [embedding], 0.1, 1);
      add(name("post_ffw_norm.weight"), [embedding], 0.1, 1);
    }
    const isPost = architecture === "qwen35" || isGptOss;
    add(name(isPost ? "post_attention_norm.weight" : "ffn_norm.weight"), [embedding], 0.1, 1);
    if (hasExperts) {
      // Beyond gpt-oss's clamps, at 7, lie some values of larger weights.
      const gates = isGptOss ? 2.5 : 1.2;
      const linears = (part: string, inputs: number, outputs: number, scale: number) => {
        add(name(`${part}.weight`), [inputs, outputs, experts.count], scale / Math.sqrt(inputs));
        if (isGptOss) add(name(`${part}.bias`), [outputs, experts.count], 0.3);
      };
      linear("ffn_gate_inp.weight", embedding, experts.count);
      if (isGptOss) add(name("ffn_gate_inp.bias"), [experts.count], 0.3);
      linears("ffn_gate_exps", embedding, feedForward, gates);
      linears("ffn_up_exps", embedding, feedForward, gates);
      linears("ffn_down_exps", feedForward, embedding, 1.2);
    } else {
      if (architecture !== "phi3") linear("ffn_gate.weight", embedding, feedForward);
      linear("ffn_up.weight", embedding, architecture === "phi3" ? 2 * feedForward : feedForward);
      linear("ffn_down.weight", feedForward, embedding);
    }
  }
  add(architecture === "lfm2" ? "token_embd_norm.weight" : "output_norm.weight", [embedding], 0.1, 1);
  if (ropeFactors)
    tensors.push({ name: "rope_freqs.weight", type: "f32", shape: [headSize / 2], data: makeRopeFactors(headSize) });
  const phi = architecture === "phi3" ? describePhiRope(headSize, contextLength, originalContext) : null;
  if (phi) {
    for (const kind of ["long", "short"] as const)
      tensors.push({
        name: `rope_factors_${kind}.weight`,
        type: "f32",
        shape: [phi.dimensions / 2],
        data: phi[kind],
      });
  }
  if (!tied) add("output.weight", [embedding, tokens.length], 1 / Math.sqrt(embedding));
  const u32 = (value: number): GgufValue => ({ type: "uint32", value });
  const key = (part: string) => `${architecture}.${part}`;
  const ofImages: Record<string, GgufValue> = {};
  if (architecture === "qwen2vl" || architecture === "qwen3vl" || architecture === "qwen35") {
    ofImages[key("rope.dimension_sections")] = { type: "array", of: "int32", value: ROPE_SECTIONS[architecture] };
  }
  if (architecture === "qwen3vl") ofImages[key("n_deepstack_layers")] = u32(deepLayers);
  const keysAndValues: GgufValue =
    architecture === "lfm2" || architecture === "granitehybrid"
      ? {
          type: "array",
          of: "int32",
          value: Array.from({ length: layers }, (_, i) => (hasAttention(i) ? kvHeads : 0)),
        }
      : u32(kvHeads);
  const ofConvolutions: Record<string, GgufValue> =
    architecture === "lfm2" ? { [key("shortconv.l_cache")]: u32(CONVOLUTION_TOKENS) } : {};
  const ofDeltaNets: Record<string, GgufValue> =
    architecture === "qwen35"
      ? {
          [key("full_attention_interval")]: u32(2),
          [key("ssm.conv_kernel")]: u32(DELTA.taps),
          [key("ssm.state_size")]: u32(DELTA.size),
          [key("ssm.group_count")]: u32(DELTA.keyHeads),
          [key("ssm.time_step_rank")]: u32(deltaHeads),
          [key("ssm.inner_size")]: u32(DELTA.size * deltaHeads),
        }
      : {};
  const ofMamba: Record<string, GgufValue> =
    architecture === "granitehybrid"
      ? {
          [key("rope.scaling.finetuned")]: { type: "bool", value: false }, // no RoPE
          [key("ssm.conv_kernel")]: u32(MAMBA.taps),
          [key("ssm.state_size")]: u32(MAMBA.size),
          [key("ssm.group_count")]: u32(MAMBA.keyHeads),
          [key("ssm.time_step_rank")]: u32(mambaHeads),
          [key("ssm.inner_size")]: u32(inner),
        }
      : {};
  const ofExperts: Record<string, GgufValue> = hasExperts
    ? {
        [key("expert_count")]: u32(experts.count),
        [key("expert_used_count")]: u32(experts.used),
        [key("expert_feed_forward_length")]: u32(feedForward),
      }
    : {};
  const ofWindows: Record<string, GgufValue> =
    architecture === "gemma3"
      ? {
          [key("attention.sliding_window")]: u32(slidingWindow),
          [key("attention.sliding_window_pattern")]: u32(WINDOW_PATTERN),
        }
      : isGptOss
        ? { [key("attention.sliding_window")]: u32(slidingWindow) }
        : {};
  const float = (value: number): GgufValue => ({ type: "float32", value });
  const ofYarn: Record<string, GgufValue> =
    architecture === "mistral3" || isGptOss
      ? {
          [key("rope.scaling.type")]: { type: "string", value: "yarn" },
          [key("rope.scaling.factor")]: float(16),
          [key("rope.scaling.original_context_length")]: u32(originalContext),
        }
      : {};
  // Bounds between which a head of 16 dimensions has frequencies of all kinds.
  const ofMistral: Record<string, GgufValue> =
    architecture === "mistral3"
      ? {
          [key("attention.temperature_scale")]: float(0.5),
          [key("rope.scaling.yarn_beta_fast")]: float(4),
          [key("rope.scaling.yarn_beta_slow")]: float(0.01),
          [key("rope.scaling.yarn_log_multiplier")]: float(0.5),
        }
      : {};
  const ofPhi: Record<string, GgufValue> = phi
    ? {
        [key("attention.sliding_window")]: u32(slidingWindow),
        [key("rope.scaling.original_context_length")]: u32(originalContext),
        [key("rope.scaling.attn_factor")]: float(phi.attnFactor),
      }
    : {};
  const ofScales: Record<string, GgufValue> =
    architecture === "granite" || architecture === "granitehybrid"
      ? {
          [key("embedding_scale")]: float(3),
          [key("residual_scale")]: float(0.6),
          [key("attention.scale")]: float(0.4),
          [key("logit_scale")]: float(1.5),
        }
      : {};
  return {
    metadata: {
      "general.architecture": { type: "string", value: architecture },
      // By the name phi3 llama.cpp would look for tokens of its published models.
      "general.name": { type: "string", value: `tiny-${architecture.replace("phi3", "phi")}` },
      [key("context_length")]: u32(contextLength),
      [key("embedding_length")]: u32(embedding),
      [key("block_count")]: u32(layers),
      [key("feed_forward_length")]: u32(feedForward),
      [key("attention.head_count")]: u32(heads),
      [key("attention.head_count_kv")]: keysAndValues,
      [key("attention.key_length")]: u32(headSize),
      [key("attention.value_length")]: u32(headSize),
      [key("rope.dimension_count")]: u32(phi?.dimensions ?? (architecture === "qwen35" ? headSize / 2 : headSize)),
      [key("attention.layer_norm_rms_epsilon")]: { type: "float32", value: 1e-6 },
      [key("rope.freq_base")]: { type: "float32", value: architecture === "gemma3" ? 1e6 : ROPE_BASE },
      ...ofImages,
      ...ofConvolutions,
      ...ofDeltaNets,
      ...ofMamba,
      ...ofExperts,
      ...ofWindows,
      ...ofScales,
      ...ofPhi,
      ...ofYarn,
      ...ofMistral,
      "tokenizer.ggml.model": { type: "string", value: "gpt2" },
      "tokenizer.ggml.pre": { type: "string", value: "qwen2" },
      "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
      "tokenizer.ggml.token_type": {
        type: "array",
        of: "int32",
        value: tokens.map((_, i) => (i < 256 ? 1 : i < 256 + control.length ? 3 : i < used ? 1 : 5)),
      },
      "tokenizer.ggml.merges": { type: "array", of: "string", value: [...merges] },
      "tokenizer.ggml.eos_token_id": u32(258),
      "tokenizer.ggml.padding_token_id": u32(256),
      "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
      "tokenizer.chat_template": { type: "string", value: chatTemplate },
    },
    tensors,
  };
}

/** Writes such a model to `path`. */
export async function makeTinyModel(path: string, options: TinyModelOptions = {}): Promise<GgufFile> {
  const file = describeTinyModel(options);
  await writeGguf(path, file);
  return file;
}
