import { join } from "node:path";
import { quantizeModel } from "../gguf-files/quantize-model.js";
import type { LlamaModel } from "../llama-model.js";
import { weightedLogprobs } from "./finite-differences.js";
import { makeNormals } from "./make-tiny-model.js";
import { makeTreeBatch } from "./make-tree-batch.js";
import type { TinyModels } from "./with-tiny-model.js";

/**
 * Measures the distance of a small model file's logprobs (nats, the worst token) and of an adapter's gradient (Euclidean,
 * relative) from those over the same weights in F32.
 */
export async function compareWithFloats(
  models: TinyModels,
  path: string,
): Promise<{ logprob: number; gradient: number }> {
  const output = join(models.folder, "as-f32.gguf");
  await quantizeModel({ input: path, output, type: "F32" });
  const [given, floats] = [await compute(models, path), await compute(models, output)];
  const apart = (a: readonly number[], b: readonly number[]) => a.map((x, i) => x - b[i]!);
  return {
    logprob: Math.max(...apart(given.logprobs, floats.logprobs).map(Math.abs)),
    gradient: Math.hypot(...apart(given.gradients, floats.gradients)) / Math.hypot(...floats.gradients),
  };
}

async function compute(models: TinyModels, path: string): Promise<{ logprobs: number[]; gradients: number[] }> {
  const model = await models.load({}, { path, lora: { rank: 4, alpha: 8 } });
  await fillAdapter(model);
  const batch = makeTreeBatch();
  const scores = await model.score(batch);
  await model.train(batch, weightedLogprobs, null);
  const gradients: number[] = [];
  for (const { name } of model.listTensors().filter(({ trainable }) => trainable))
    gradients.push(...(await model.readTensor(name, "gradient")));
  await model.dispose();
  return { logprobs: scores.flatMap(({ logprobs }) => [...logprobs]), gradients };
}

/** Makes a new adapter non-zero. */
export async function fillAdapter(model: LlamaModel): Promise<void> {
  const normal = makeNormals(3);
  for (const { name, shape } of model.listTensors().filter((tensor) => tensor.name.endsWith(".lora_b")))
    await model.writeTensor(
      name,
      Float32Array.from({ length: shape.reduce((product, n) => product * n, 1) }, () => 0.1 * normal()),
    );
}
