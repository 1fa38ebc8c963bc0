// A program that prints a digest for each kind of model, over what the engine computes with it: sampled tokens and
// logprobs, scores, and weights after a step of training; behind a picture where the model sees. JSON, one line.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadImage } from "@cria/core";
import type { LoadModelOptions } from "../load-native.js";
import { weightedLogprobs } from "./finite-differences.js";
import { type TinyModelOptions, textArchitectures } from "./make-tiny-model.js";
import { makeTinyProjector } from "./tiny-projector.js";
import { drawPicture, visionPairs } from "./vision-pairs.js";
import { TinyModels } from "./with-tiny-model.js";

const models = new TinyModels();
const digests: Record<string, string> = {};

async function compute(name: string, tiny: TinyModelOptions, options: Partial<LoadModelOptions>, picture?: Uint8Array) {
  const model = await models.load(tiny, { contextSize: 256, ...options });
  const hash = createHash("sha256");
  const add = (values: Float32Array | Int32Array | Uint8Array) =>
    hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  const shown = picture ? model.images!.place(await loadImage({ bytes: picture })).tokenIds : [];
  const prompt = Int32Array.of(...shown, ...model.tokenize("Ann has 12 apples.\n"));
  for (const seed of [1, 2]) {
    const sequence = model.createSequence();
    const { tokenIds, logprobs } = await sequence.generate(prompt, { maxTokens: 6, temperature: 1, seed });
    sequence.dispose();
    add(tokenIds);
    add(logprobs);
    const sampled = Int32Array.of(...prompt, ...tokenIds);
    for (const scored of await model.score([{ tokenIds: sampled }])) add(Float32Array.from(scored.logprobs));
    const lossMask = Array.from(sampled, (_, t) => (t < prompt.length ? 0 : 1));
    const columns = { weights: lossMask.map((isSampled) => -isSampled) };
    const optimizer = {
      ...{ learningRate: 0.01, betas: [0.9, 0.95] as [number, number], epsilon: 1e-8 },
      ...{ weightDecay: 0, maxGradNorm: 1 },
    };
    const { gradNorm } = await model.train([{ tokenIds: sampled, lossMask, columns }], weightedLogprobs, optimizer);
    add(Float32Array.of(gradNorm));
  }
  if (options.lora) {
    const adapter = join(models.folder, "adapter.gguf");
    await model.saveAdapter(adapter);
    add(readFileSync(adapter));
  }
  await model.dispose();
  digests[name] = hash.digest("hex").slice(0, 16);
}

const lora = { rank: 4, alpha: 8 };
for (const architecture of textArchitectures) {
  await compute(`${architecture}, LoRA`, { architecture }, { lora });
  await compute(`${architecture}, full`, { architecture }, { trainable: "full" });
}
for (const type of ["f16", "bf16", "q8_0", "q4_K", "q6_K"] as const)
  await compute(`llama in ${type}`, { embedding: 256, heads: 4, headSize: 64, feedForward: 256, type }, { lora });
await compute("llama, keys and values in F16", {}, { lora, kvType: "f16" });
for (const { name, model, projector, width, height } of visionPairs) {
  const mmproj = join(models.folder, "mmproj.gguf");
  await makeTinyProjector(mmproj, projector);
  const picture = drawPicture(width, height);
  await compute(name, model, { lora, mmproj }, picture);
  await compute(`${name}, at most 9 tokens`, model, { lora, mmproj, imageMaxTokens: 9 }, picture);
}
await models.cleanUp();
console.log(JSON.stringify(digests));
