import type { GgufFile, GgufTensor, GgufValue } from "@cria/engine";
import { specialTokens, type Vocabulary } from "./bpe.js";
import { chatTemplate } from "./policy-prompt.js";
import { Random } from "./random.js";

/** Shape of the embedded policy: Qwen3 (RMS norms, NeoX RoPE, q/k norms, grouped queries, SwiGLU), tied embeddings. */
export const policyShape = {
  embedding: 128,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 32,
  feedForward: 384,
  context: 512,
} as const;

/** Random weights around a vocabulary, in F32. */
export function describeInitialModel(vocabulary: Vocabulary, seed: number): GgufFile {
  const { embedding, layers, heads, kvHeads, headSize, feedForward, context } = policyShape;
  const random = new Random(seed);
  const tensors: GgufTensor[] = [];
  const add = (name: string, shape: number[], make: () => number) =>
    tensors.push({
      name,
      type: "f32",
      shape,
      data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, make),
    });
  const ones = (name: string, size: number) => add(name, [size], () => 1);
  // GPT-2's scheme: residual outputs start smaller by the number of layers that add to the stream.
  const inner = () => 0.04 * random.normal();
  const outer = () => (0.04 / Math.sqrt(2 * layers)) * random.normal();
  add("token_embd.weight", [embedding, vocabulary.tokens.length], inner);
  for (let i = 0; i < layers; i++) {
    const name = (part: string) => `blk.${i}.${part}.weight`;
    ones(name("attn_norm"), embedding);
    add(name("attn_q"), [embedding, heads * headSize], inner);
    add(name("attn_k"), [embedding, kvHeads * headSize], inner);
    add(name("attn_v"), [embedding, kvHeads * headSize], inner);
    ones(name("attn_q_norm"), headSize);
    ones(name("attn_k_norm"), headSize);
    add(name("attn_output"), [heads * headSize, embedding], outer);
    ones(name("ffn_norm"), embedding);
    add(name("ffn_gate"), [embedding, feedForward], inner);
    add(name("ffn_up"), [embedding, feedForward], inner);
    add(name("ffn_down"), [feedForward, embedding], outer);
  }
  ones("output_norm.weight", embedding);

  const id = (token: (typeof specialTokens)[number]) => vocabulary.tokens.indexOf(token);
  const u32 = (value: number): GgufValue => ({ type: "uint32", value });
  const text = (value: string): GgufValue => ({ type: "string", value });
  const firstSpecial = vocabulary.tokens.length - specialTokens.length;
  // 1 normal, 3 control, 4 user-defined: tool marks are visible text, as in Qwen's vocabularies.
  const tokenTypes = vocabulary.tokens.map((token, i) => (i < firstSpecial ? 1 : token.startsWith("<|") ? 3 : 4));
  return {
    metadata: {
      "general.architecture": text("qwen3"),
      "general.name": text("cria-tiny"),
      "general.license": text("apache-2.0"),
      "general.description": text(
        "A policy of half a million parameters that uses a calculator and plays a code game badly, on purpose.",
      ),
      "qwen3.context_length": u32(context),
      "qwen3.embedding_length": u32(embedding),
      "qwen3.block_count": u32(layers),
      "qwen3.feed_forward_length": u32(feedForward),
      "qwen3.attention.head_count": u32(heads),
      "qwen3.attention.head_count_kv": u32(kvHeads),
      "qwen3.attention.key_length": u32(headSize),
      "qwen3.attention.value_length": u32(headSize),
      "qwen3.attention.layer_norm_rms_epsilon": { type: "float32", value: 1e-6 },
      "qwen3.rope.freq_base": { type: "float32", value: 10000 },
      "tokenizer.ggml.model": text("gpt2"),
      "tokenizer.ggml.pre": text("qwen2"),
      "tokenizer.ggml.tokens": { type: "array", of: "string", value: vocabulary.tokens },
      "tokenizer.ggml.token_type": { type: "array", of: "int32", value: tokenTypes },
      "tokenizer.ggml.merges": { type: "array", of: "string", value: vocabulary.merges },
      "tokenizer.ggml.eos_token_id": u32(id("<|im_end|>")),
      "tokenizer.ggml.padding_token_id": u32(id("<|endoftext|>")),
      "tokenizer.ggml.bos_token_id": u32(id("<|endoftext|>")),
      "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
      "tokenizer.chat_template": text(chatTemplate),
    },
    tensors,
  };
}
