import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type GgufTensorType, type LlamaModel, quantizeModel } from "./index.js";
import { makeNormals, makeTreeBatch, TinyModels, weightedLogprobs } from "./testing/index.js";

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

async function compute(path: string) {
  const model: LlamaModel = await models.load({}, { path, lora: { rank: 4, alpha: 8 } });
  const normal = makeNormals(3);
  for (const { name, shape } of model.listTensors().filter((tensor) => tensor.name.endsWith(".lora_b")))
    await model.writeTensor(
      name,
      Float32Array.from({ length: shape[0]! * shape[1]! }, () => 0.1 * normal()),
    );
  const batch = makeTreeBatch();
  const scores = await model.score(batch);
  await model.train(batch, weightedLogprobs, null);
  const gradients: number[] = [];
  for (const { name } of model.listTensors().filter(({ trainable }) => trainable))
    gradients.push(...(await model.readTensor(name, "gradient")));
  await model.dispose();
  return { logprobs: scores.flatMap(({ logprobs }) => [...logprobs]), gradients };
}

const norm = (values: readonly number[]) => Math.hypot(...values);

describe("LoRA over quantized weights has the gradients of the same weights in F32, but for rounded activations", () => {
  const cases = BOUNDS.flatMap(([types, logprobs, gradients]) =>
    types.map((type) => [type, logprobs, gradients] as const),
  );
  it.each(cases)("%s", async (type, logprobs, gradients) => {
    const path = await models.write({
      architecture: "qwen2",
      type,
      embedding: 256,
      heads: 4,
      headSize: 64,
      feedForward: 256,
      embeddingScale: 0.1,
    });
    const output = join(models.folder, `${type}-as-f32.gguf`);
    await quantizeModel({ input: path, output, type: "F32" });
    const [given, floats] = [await compute(path), await compute(output)];
    const apart = (a: readonly number[], b: readonly number[]) => a.map((x, i) => x - b[i]!);
    const worst = Math.max(...apart(given.logprobs, floats.logprobs).map(Math.abs));
    const relative = norm(apart(given.gradients, floats.gradients)) / norm(floats.gradients);
    expect(worst).toBeLessThan(logprobs);
    expect(relative).toBeLessThan(gradients);
    expect(relative).toBeGreaterThan(0);
  });
});
