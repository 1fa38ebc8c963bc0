import { type GgufContent, type GgufValue, type LazyGgufTensor, readGguf, writeGguf } from "@cria/engine";
import { getSourceFile } from "../llama-cpp.js";
import { type ModelName, type ModelShape, shapes } from "./shapes.js";

/** ChatML, as both families' instruction models have it. */
const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/** Writes a model of this shape in F16, one tensor in memory at a time. Embeddings are tied, as in the real models. */
export async function writeRandomModel(path: string, name: ModelName): Promise<void> {
  const shape: ModelShape = shapes[name];
  const vocabulary = await readGguf(await getSourceFile(`models/ggml-vocab-${shape.bundledVocabulary}.gguf`));
  // The vocabulary file's entries of the model itself are a real model's: only its tokenizer is taken.
  const tokenizer = Object.fromEntries([...vocabulary.metadata].filter(([key]) => key.startsWith("tokenizer.")));
  const own = describe(name, shape);
  const metadata: GgufContent["metadata"] = { ...own, ...tokenizer, ...own };
  const tokens = vocabulary.metadata.get("tokenizer.ggml.tokens")!.value as { arrayLength: number };
  if (tokens.arrayLength !== shape.vocabulary)
    throw new Error(`${shape.bundledVocabulary} has ${tokens.arrayLength} tokens, ${name} ${shape.vocabulary}`);
  await writeGguf(path, { metadata, tensors: planTensors(shape) });
}

function describe(name: string, shape: ModelShape): Record<string, GgufValue> {
  const u32 = (value: number): GgufValue => ({ type: "uint32", value });
  const f32 = (value: number): GgufValue => ({ type: "float32", value });
  const text = (value: string): GgufValue => ({ type: "string", value });
  const key = (part: string) => `${shape.architecture}.${part}`;
  return {
    "general.architecture": text(shape.architecture),
    "general.name": text(`random ${name}`),
    "general.file_type": u32(1),
    [key("context_length")]: u32(shape.context),
    [key("embedding_length")]: u32(shape.embedding),
    [key("block_count")]: u32(shape.layers),
    [key("feed_forward_length")]: u32(shape.feedForward),
    [key("attention.head_count")]: u32(shape.heads),
    [key("attention.head_count_kv")]: u32(shape.kvHeads),
    [key("attention.key_length")]: u32(shape.headSize),
    [key("attention.value_length")]: u32(shape.headSize),
    [key("rope.dimension_count")]: u32(shape.headSize),
    [key("rope.freq_base")]: f32(shape.ropeBase),
    [key("attention.layer_norm_rms_epsilon")]: f32(shape.normEpsilon),
    [key("vocab_size")]: u32(shape.vocabulary),
    "tokenizer.chat_template": text(CHATML),
  };
}

function planTensors(shape: ModelShape): LazyGgufTensor[] {
  const { embedding, heads, kvHeads, headSize, feedForward } = shape;
  const tensors: LazyGgufTensor[] = [];
  const draw = makeIndices(shape.layers);
  const matrix = (name: string, inputs: number, outputs: number, scale: number) =>
    tensors.push({
      name,
      type: "f16",
      shape: [inputs, outputs],
      makeBytes: async () => drawHalves(inputs * outputs, scale, draw),
    });
  const vector = (name: string, size: number, mean: number, scale: number) =>
    tensors.push({
      name,
      type: "f32",
      shape: [size],
      makeBytes: async () => {
        const values = Float32Array.from({ length: size }, () => mean + scale * quantiles[draw()]!);
        return Buffer.from(values.buffer);
      },
    });
  // Tied: logits have a standard deviation of about 1.8, so that sampled text is neither constant nor uniform.
  matrix("token_embd.weight", embedding, shape.vocabulary, 1.8 / Math.sqrt(embedding));
  for (let i = 0; i < shape.layers; i++) {
    const name = (part: string) => `blk.${i}.${part}`;
    // Each layer keeps the scale of its input; the residual stream grows with depth, and the last norm undoes that.
    const linear = (part: string, inputs: number, outputs: number) =>
      matrix(name(`${part}.weight`), inputs, outputs, 1 / Math.sqrt(inputs));
    vector(name("attn_norm.weight"), embedding, 1, 0.1);
    linear("attn_q", embedding, heads * headSize);
    linear("attn_k", embedding, kvHeads * headSize);
    linear("attn_v", embedding, kvHeads * headSize);
    if (shape.biases) {
      vector(name("attn_q.bias"), heads * headSize, 0, 0.3);
      vector(name("attn_k.bias"), kvHeads * headSize, 0, 0.3);
      vector(name("attn_v.bias"), kvHeads * headSize, 0, 0.1);
    }
    if (shape.headNorms) {
      vector(name("attn_q_norm.weight"), headSize, 1, 0.1);
      vector(name("attn_k_norm.weight"), headSize, 1, 0.1);
    }
    linear("attn_output", heads * headSize, embedding);
    vector(name("ffn_norm.weight"), embedding, 1, 0.1);
    linear("ffn_gate", embedding, feedForward);
    linear("ffn_up", embedding, feedForward);
    linear("ffn_down", feedForward, embedding);
  }
  vector("output_norm.weight", embedding, 1, 0.1);
  return tensors;
}

/** Half a gigabyte of normals must not take minutes: values are drawn from this many equally likely ones. */
const COUNT = 1 << 14;
const quantiles = Float64Array.from({ length: COUNT }, (_, i) => inverseNormal((i + 0.5) / COUNT));

/** xorshift32 (Marsaglia 2003) as a source of table indices. */
function makeIndices(seed: number): () => number {
  let x = 0x9e3779b9 ^ seed;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 8) & (COUNT - 1);
  };
}

function drawHalves(count: number, scale: number, draw: () => number): Buffer {
  const table = Uint16Array.from(quantiles, (q) => encodeHalf(q * scale));
  const values = new Uint16Array(count);
  for (let i = 0; i < count; i++) values[i] = table[draw()]!;
  return Buffer.from(values.buffer);
}

/** Encodes normal halves; smaller values become 0. */
function encodeHalf(value: number): number {
  const size = Math.abs(value);
  if (size < 2 ** -14) return 0;
  const exponent = Math.floor(Math.log2(size));
  const fraction = Math.round((size / 2 ** exponent - 1) * 1024);
  // A fraction that rounds to 1024 carries into the exponent by itself.
  return (value < 0 ? 0x8000 : 0) + ((exponent + 15) << 10) + fraction;
}

/** Quantile of the standard normal by bisection of its distribution function. */
function inverseNormal(p: number): number {
  let [low, high] = [-6, 6];
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (distribution(middle) < p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Abramowitz and Stegun 26.2.17, within 7.5e-8. */
function distribution(x: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(x));
  const tail =
    (Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)) *
    t *
    (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return x > 0 ? 1 - tail : tail;
}
