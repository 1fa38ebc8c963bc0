import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { countBytes, getType } from "./gguf-files/tensor-types.js";
import { writeGguf } from "./gguf-files/write-gguf.js";
import type { GgufTensorType } from "./index.js";
import { compareWithFloats, describeTinyModel, makeNormals, TinyModels } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/**
 * The most that a logprob (nats) and the gradient of an adapter (Euclidean, relative) may be away from those over the
 * same weights in F32, which torch-reference.test.ts compares with float64: about twice the measured distances, which
 * the table of docs/devices.md has. The distance is that of activations, which are rounded for products with a type.
 */
const BOUNDS: [readonly GgufTensorType[], logprobs: number, gradients: number][] = [
  [["f16"], 5e-3, 2e-3],
  [["bf16"], 3e-2, 2e-2],
  // Blocks of 32 activations.
  [["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "mxfp4"], 0.15, 6e-2],
  // Blocks of 256.
  [["q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs", "tq1_0", "tq2_0"], 0.2, 9e-2],
];

/** A file in whose embedding two of the 256 channels are 30 times as large as the others. */
async function writeOutliers(type: GgufTensorType): Promise<string> {
  const { metadata, tensors } = describeTinyModel({ architecture: "qwen2", type, ...shape });
  const { data } = tensors.find(({ name }) => name === "token_embd.weight")!;
  for (let row = 0; row < data.length; row += shape.embedding)
    for (const channel of [17, 200]) data[row + channel]! *= 30;
  const path = join(models.folder, `outliers-${type}.gguf`);
  await writeGguf(path, { metadata, tensors });
  return path;
}

/** A file whose matrices, but for the embedding, have random blocks of a type, with scales of usual sizes. */
async function writeBlocks(name: keyof typeof scales): Promise<string> {
  const { metadata, tensors } = describeTinyModel({ architecture: "qwen2", ...shape });
  const type = getType(name);
  const normal = makeNormals(7);
  const changed = tensors.map((tensor) => {
    if (tensor.shape.length < 2 || tensor.name === "token_embd.weight") return tensor;
    const bytes = Uint8Array.from({ length: countBytes(type, tensor.shape) }, () => Math.abs(normal() * 1000) % 256);
    for (let block = 0; block < bytes.length; block += type.blockBytes) scales[name](bytes.subarray(block));
    return { name: tensor.name, type: name, shape: tensor.shape, makeBytes: async () => bytes };
  });
  const path = join(models.folder, `${name}.gguf`);
  await writeGguf(path, { metadata, tensors: changed });
  return path;
}

/** Sets the scales of a block, which random bytes would make infinite. */
const f16 = (high: number) => (block: Uint8Array) => {
  block[1] = high;
};
const scales = {
  iq1_s: f16(0x20),
  // Its scale's 16 bits are the highest four of each of the last four numbers.
  iq1_m: (block: Uint8Array) => {
    block[55] = 0x10 | (block[55]! & 0xf);
    block[53] = 0xc0 | (block[53]! & 0xf);
  },
  iq2_xxs: f16(0x14),
  iq2_xs: f16(0x14),
  nvfp4: (block: Uint8Array) => {
    for (let k = 0; k < 4; k++) block[k] = 0x08 + (block[k]! & 7);
  },
  q1_0: f16(0x2b),
  q2_0: f16(0x2a),
};

const shape = { embedding: 256, heads: 4, headSize: 64, feedForward: 256, embeddingScale: 0.1 };

describe("LoRA over quantized weights has the gradients of the same weights in F32, but for rounded activations", () => {
  const cases = BOUNDS.flatMap(([types, logprobs, gradients]) =>
    types.map((type) => [type, logprobs, gradients] as const),
  );
  it.each(cases)("%s", async (type, logprobs, gradients) => {
    const found = await compareWithFloats(models, await models.write({ architecture: "qwen2", type, ...shape }));
    expect(found.logprob).toBeLessThan(logprobs);
    expect(found.gradient).toBeLessThan(gradients);
    expect(found.gradient).toBeGreaterThan(0);
  });

  // llama.cpp writes these only by an importance matrix, or not at all: their blocks are random here.
  it.each(Object.keys(scales) as (keyof typeof scales)[])("%s", async (type) => {
    const found = await compareWithFloats(models, await writeBlocks(type));
    expect(found.logprob).toBeLessThan(0.12);
    expect(found.gradient).toBeLessThan(6e-2);
    expect(found.gradient).toBeGreaterThan(0);
  });

  // Published models have channels that are hundreds of times larger than others, in the residual stream and, less so,
  // behind its norms: their blocks of activations are rounded more coarsely.
  it.each([
    ["f16", 4e-3, 2e-3],
    ["q8_0", 0.15, 7e-2],
    ["q4_0", 0.12, 5e-2],
    ["q4_K", 0.6, 0.18],
  ] as const)("%s with outliers", async (type, logprobs, gradients) => {
    const found = await compareWithFloats(models, await writeOutliers(type));
    expect(found.logprob).toBeLessThan(logprobs);
    expect(found.gradient).toBeLessThan(gradients);
    expect(found.gradient).toBeGreaterThan(0);
  });

  // Types that our products multiply, and types that ggml does. Tokens take all experts: a rounded activation could
  // change a choice, and move a logprob by nats.
  it.each([
    ["qwen3moe", "f16", 1e-2, 3e-3],
    ["qwen3moe", "q8_0", 0.2, 7e-2],
    ["qwen3moe", "q6_K", 0.35, 9e-2],
    ["qwen3moe", "mxfp4", 0.2, 7e-2],
    ["qwen3moe", "iq3_s", 0.4, 9e-2],
    // Some of larger gates are moved over their clamp by a rounded activation.
    ["gpt-oss", "f16", 1e-2, 1.3e-2],
    ["gpt-oss", "mxfp4", 0.2, 0.16],
  ] as const)("experts of %s in %s", async (architecture, type, logprobs, gradients) => {
    const experts = { count: 4, used: 4 };
    const found = await compareWithFloats(models, await models.write({ architecture, experts, type, ...shape }));
    expect(found.logprob).toBeLessThan(logprobs);
    expect(found.gradient).toBeLessThan(gradients);
    expect(found.gradient).toBeGreaterThan(0);
  });
});
