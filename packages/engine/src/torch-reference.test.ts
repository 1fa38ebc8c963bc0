import { join } from "node:path";
import { composePolicyLoss, defaultPolicyLoss } from "@cria/algorithms";
import type { OptimizerOptions } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "./index.js";
import {
  listReferenceTargets,
  makeReferenceBatch,
  type ReferenceTraining,
  readTorchReference,
  TinyModels,
  type TorchReference,
  torchFamilies,
} from "./testing/index.js";

const folder = join(import.meta.dirname, "..", "fixtures", "torch");
const models = new TinyModels();
afterAll(() => models.cleanUp());

const loss = composePolicyLoss({ ...defaultPolicyLoss, entropyCoeff: 0.02, kl: { coefficient: 0.01, type: "k3" } });
const optimizer: OptimizerOptions = {
  learningRate: 3e-3,
  betas: [0.9, 0.95],
  epsilon: 1e-8,
  weightDecay: 0.1,
  maxGradNorm: 1,
};
const temperature = 0.7;

/** Largest difference, relative to the largest expected magnitude. */
function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  let worst = 0;
  let scale = 1e-12;
  for (let i = 0; i < expected.length; i++) {
    worst = Math.max(worst, Math.abs(actual[i]! - expected[i]!));
    scale = Math.max(scale, Math.abs(expected[i]!));
  }
  return worst / scale;
}

async function checkTraining(model: LlamaModel, reference: TorchReference, expected: ReferenceTraining) {
  const batch = makeReferenceBatch(reference);
  await model.train(batch, loss, null, { temperature });
  for (const [name, gradient] of Object.entries(expected.gradients)) {
    expect(relativeError(await model.readTensor(name, "gradient"), gradient), name).toBeLessThan(2e-4);
  }
  await model.zeroGradients();
  for (let step = 0; step < 3; step++) {
    const result = await model.train(batch, loss, optimizer, { temperature });
    expect(result.loss).toBeCloseTo(expected.losses[step]!, 4);
    expect(result.gradNorm / expected.gradNorms[step]!).toBeCloseTo(1, 3);
  }
  for (const [name, value] of Object.entries(expected.values)) {
    expect(relativeError(await model.readTensor(name), value), name).toBeLessThan(1e-3);
  }
}

describe.each(torchFamilies)("%s against PyTorch", (family) => {
  const reference = readTorchReference(folder, family);
  const { path } = reference;

  it("logits, logprobs and entropies", async () => {
    const model = await models.load({}, { path, trainable: "full" });
    for (const t of [1, 0.7]) {
      const scores = await model.score(reference.batch, { temperature: t, entropy: true });
      reference.batch.forEach((sequence, i) => {
        expect(relativeError(scores[i]!.logprobs, sequence.logprobs[t === 1 ? "1.0" : "0.7"]!)).toBeLessThan(1e-5);
        expect(relativeError(scores[i]!.entropy!, sequence.entropy[t === 1 ? "1.0" : "0.7"]!)).toBeLessThan(1e-5);
      });
    }
    // Logits are returned as logprobs of every token of the vocabulary: compares differences within a row, at each
    // position.
    const tokens = reference.batch[2]!.tokenIds;
    const vocab = model.info.vocabSize;
    const position = tokens.length - 1;
    const rows = await model.score(
      Array.from({ length: vocab }, (_, token) => ({ tokenIds: [...tokens, token], from: tokens.length })),
    );
    const logprobs = rows.map((row) => row.logprobs[tokens.length]!);
    const expected = reference.logits.slice(position * vocab, (position + 1) * vocab);
    const shift = (values: number[]) => values.map((v) => v - values[0]!);
    expect(relativeError(shift(logprobs), shift(expected))).toBeLessThan(1e-5);
  });

  it("full training: loss, every gradient, three AdamW steps", async () => {
    const model = await models.load({}, { path, trainable: "full" });
    await checkTraining(model, reference, reference.full);
  });

  it("LoRA: loss, every gradient, three AdamW steps", async () => {
    const lora = { rank: 4, alpha: 8, targets: listReferenceTargets(reference) };
    const model = await models.load({}, { path, lora });
    for (const [name, values] of Object.entries(reference.lora.initial))
      await model.writeTensor(name, Float32Array.from(values));
    await checkTraining(model, reference, reference.lora);
  });
});
