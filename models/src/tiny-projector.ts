import type { GgufContent, GgufTensor, GgufValue } from "@cria/engine";
import { Random } from "./random.js";

/**
 * A projector for the embedded policy with random, untrained weights: an image of 32 x 32 pixels is cut into 16 patches
 * of 8 x 8, and each becomes a vector by a random linear map, the vector of its place, and a random network of two
 * layers. llama.cpp treats it as LLaVA's ("mlp") and skips the transformer's last layer: with a single layer none
 * remains. It only shows that the machinery works: a policy that reads digits from it has learned that itself.
 */
export function describeTinyProjector({ seed = 1, embedding = 128, projection = 128 } = {}): GgufContent {
  const random = new Random(seed);
  const [image, patch] = [32, 8];
  const metadata: Record<string, GgufValue> = {
    "general.architecture": { type: "string", value: "clip" },
    "general.name": { type: "string", value: "cria-tiny-vision" },
    "general.license": { type: "string", value: "apache-2.0" },
    "general.file_type": { type: "uint32", value: 0 },
    "clip.has_vision_encoder": { type: "bool", value: true },
    "clip.projector_type": { type: "string", value: "mlp" },
    "clip.use_gelu": { type: "bool", value: true },
    "clip.vision.attention.layer_norm_epsilon": { type: "float32", value: 1e-6 },
  };
  for (const key of ["image_mean", "image_std"])
    metadata[`clip.vision.${key}`] = { type: "array", of: "float32", value: [0.5, 0.5, 0.5] };
  const counts = {
    image_size: image,
    patch_size: patch,
    embedding_length: embedding,
    feed_forward_length: 8,
    block_count: 1,
    projection_dim: projection,
    "attention.head_count": 4,
  };
  for (const [key, value] of Object.entries(counts)) metadata[`clip.vision.${key}`] = { type: "uint32", value };

  const tensors: GgufTensor[] = [];
  const add = (name: string, shape: number[], fill: () => number) => {
    const size = shape.reduce((product, axis) => product * axis, 1);
    tensors.push({
      name,
      type: name.startsWith("v.blk") && shape.length > 1 ? "f16" : "f32",
      shape,
      data: Float32Array.from({ length: size }, fill),
    });
  };
  const linear = (name: string, inputs: number, outputs: number) => {
    add(`${name}.weight`, [inputs, outputs], () => random.normal() / Math.sqrt(inputs));
    add(`${name}.bias`, [outputs], () => 0);
  };
  add("v.patch_embd.weight", [patch, patch, 3, embedding], () => random.normal() / Math.sqrt(3 * patch * patch));
  add("v.patch_embd.bias", [embedding], () => 0);
  add("v.position_embd.weight", [embedding, (image / patch) ** 2], () => 0.3 * random.normal());
  // Read, but not used.
  for (const part of ["attn_q", "attn_k", "attn_v", "attn_out"]) linear(`v.blk.0.${part}`, embedding, embedding);
  for (const part of ["ln1", "ln2"]) {
    add(`v.blk.0.${part}.weight`, [embedding], () => 1);
    add(`v.blk.0.${part}.bias`, [embedding], () => 0);
  }
  linear("v.blk.0.ffn_up", embedding, counts.feed_forward_length);
  linear("v.blk.0.ffn_down", counts.feed_forward_length, embedding);
  linear("mm.0", embedding, projection);
  linear("mm.2", projection, projection);
  return { metadata, tensors };
}
