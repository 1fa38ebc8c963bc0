import { afterAll, describe, expect, it } from "vitest";
import type { GgufTensorType } from "./index.js";
import { compareWithFloats, TinyModels } from "./testing/index.js";

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

const shape = { embedding: 256, heads: 4, headSize: 64, feedForward: 256, embeddingScale: 0.1 };

describe("LoRA over quantized weights has the gradients of the same weights in F32, but for rounded activations", () => {
  const cases = BOUNDS.flatMap(([types, logprobs, gradients]) =>
    types.map((type) => [type, logprobs, gradients] as const),
  );
  it.each(cases)("%s", async (type, logprobs, gradients) => {
    const found = await compareWithFloats(models, { architecture: "qwen2", type, ...shape });
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
    const found = await compareWithFloats(models, { architecture, experts, type, ...shape });
    expect(found.logprob).toBeLessThan(logprobs);
    expect(found.gradient).toBeLessThan(gradients);
    expect(found.gradient).toBeGreaterThan(0);
  });
});
