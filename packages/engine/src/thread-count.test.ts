import type { LossFunction, TrainSequence } from "@cria/core";
import { isNightly } from "@cria/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LoadModelOptions } from "./index.js";
import { makeNormals, type TinyModelOptions, TinyModels, weightedLogprobs } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

// More threads than cores spin while they wait, which is slow. Three divide everything unevenly; even numbers are nightly
// (batch-bits.test.ts generates with two).
const THREADS = isNightly ? [1, 2, 3, 4] : [1, 3];
const VOCABULARY = 2400;

/** Sequences of unequal length, two with a common prefix; more than 48 tokens make several blocks of attention. */
function makeBatch(seed: number, entropy: boolean): TrainSequence[] {
  const normal = makeNormals(seed);
  const token = () => Math.abs(Math.floor(normal() * 99_991)) % VOCABULARY;
  const prefix = Array.from({ length: 21 }, token);
  return [31, 7, 53].map((length, i) => {
    const tokenIds = [...(i < 2 ? prefix : []), ...Array.from({ length }, token)];
    return {
      tokenIds,
      lossMask: tokenIds.map((_, t) => (t > 1 && (t + i) % 3 ? 1 : 0)),
      columns: {
        weights: tokenIds.map(() => normal()),
        entropyWeights: tokenIds.map(() => (entropy ? 0.2 * normal() : 0)),
      },
    };
  });
}

/** Keeps the logprobs that the loss saw. */
const seen: number[][] = [];
const loss: LossFunction = (inputs) => {
  seen.push([...inputs.logprobs, ...inputs.entropy]);
  return weightedLogprobs(inputs);
};

/** All results of training, by name. */
async function train(model: LlamaModel, steps: number): Promise<Record<string, unknown>> {
  const results: Record<string, unknown> = {};
  for (let step = 0; step < steps; step++) {
    const options = { learningRate: 1e-2, maxGradNorm: 1 };
    const { loss: value, gradNorm } = await model.train(makeBatch(step + 1, step % 2 === 1), loss, options);
    results[`step ${step}`] = { value, gradNorm, seen: seen.splice(0) };
  }
  for (const { name, trainable } of model.listTensors())
    if (trainable) results[name] = [...(await model.readTensor(name, "value"))];
  const scores = await model.score(makeBatch(9, false), { entropy: true, temperature: 0.9 });
  results.scores = scores.map(({ logprobs, entropy }) => [...logprobs, ...entropy!]);
  return results;
}

/** Three prompts, two of which are evaluated in a batch together, and a few tokens after each. */
async function generate(model: LlamaModel): Promise<Record<string, unknown>> {
  const results = makeBatch(20, false).map(async ({ tokenIds }, seed) => {
    const sequence = model.createSequence();
    const result = await sequence.generate(tokenIds, { maxTokens: 3, seed, stopTokens: [] });
    sequence.dispose();
    return [`request ${seed}`, [[...result.tokenIds], [...result.logprobs]]];
  });
  return Object.fromEntries(await Promise.all(results));
}

const small: TinyModelOptions = { vocabulary: VOCABULARY, embedding: 64, feedForward: 160, layers: 1 };
const blocks: TinyModelOptions = { ...small, embedding: 256, headSize: 64, feedForward: 512, tied: false };
const lora = { rank: 4, targets: ["attn_q", "ffn_down"] };
// Waiting threads spin, so more threads than cores are slow. Steps therefore have few operations.
const cases: [string, number, TinyModelOptions, Omit<LoadModelOptions, "path">][] = [
  ["F32, full", 3, { ...small, architecture: "llama", tied: true }, { trainable: "full" }],
  ["F32, LoRA", 3, { ...small, architecture: "llama" }, { lora }],
  ["F16, LoRA", 2, { ...small, type: "f16", architecture: "qwen2" }, { lora }],
  ["Q8_0, LoRA", 2, { ...small, type: "q8_0" }, { lora }],
  ["Q4_K, LoRA", 2, { ...blocks, type: "q4_K" }, { lora }],
  ["experts in F32, full", 1, { ...small, architecture: "qwen3moe" }, { trainable: "full" }],
  ["experts with biases, and sinks, full", 1, { ...small, architecture: "gpt-oss" }, { trainable: "full" }],
  ["experts in Q8_0, LoRA", 1, { ...small, type: "q8_0", architecture: "qwen3moe" }, { lora: { rank: 4 } }],
];

/** Name of the first entry of `results` that differs from the others. */
function findDifference(results: Record<string, unknown>[]): string | null {
  for (const [i, result] of results.entries()) {
    expect(Object.keys(result).length).toBeGreaterThan(1);
    for (const name of Object.keys(result))
      if (JSON.stringify(result[name]) !== JSON.stringify(results[0]![name]))
        return `${name}: ${THREADS[i]} threads differ from 1`;
  }
  return null;
}

describe("results do not depend on the number of threads, bit for bit", () => {
  it.each(cases)("%s, %i steps", async (_, steps, tiny, options) => {
    const path = await models.write(tiny);
    const results: Record<string, unknown>[] = [];
    for (const threads of THREADS) {
      const model = await models.load({}, { path, threads, contextSize: 160, ...options });
      const trained = await train(model, steps);
      results.push({ ...(await generate(model)), ...trained });
      await model.dispose();
    }
    expect(findDifference(results)).toBeNull();
  });

  // From 512 cells on, ggml divides a single sequence's cells among threads, unless rows are padded as `deterministic`
  // does.
  it("generation with flash attention", async () => {
    const path = await models.write({ layers: 1 });
    const results: Record<string, unknown>[] = [];
    for (const threads of THREADS) {
      const options = { kvType: "f16", flashAttention: true, contextSize: 640, maxSequences: 1 } as const;
      const model = await models.load({}, { path, threads, ...options });
      const prompt = Array.from({ length: 600 }, (_, i) => (i * 37) % 251);
      const { tokenIds, logprobs } = await model
        .createSequence()
        .generate(prompt, { maxTokens: 8, seed: 1, stopTokens: [] });
      results.push({ tokenIds: [...tokenIds], logprobs: [...logprobs] });
      await model.dispose();
    }
    expect(findDifference(results)).toBeNull();
  });
});
