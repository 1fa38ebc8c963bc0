import type { GenerateResult } from "@cria/core";
import { amount, isNightly } from "@cria/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "./index.js";
import { fillAdapter, makeNormals, type TinyModelOptions, TinyModels } from "./testing/index.js";

// A conversation's bits do not depend on other conversations in the batch or on the number of threads. Behind 6 rows
// (integers) and 24 (floats) our products switch from stored weights to packed ones; ggml's switch at two, four and eight.
const models = new TinyModels();
afterAll(() => models.cleanUp());

const SMALL_BLOCKS = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "mxfp4"] as const;
const BLOCKS_OF_256 = [
  "q2_K",
  "q3_K",
  "q4_K",
  "q5_K",
  "q6_K",
  "iq2_s",
  "iq3_xxs",
  "iq3_s",
  "iq4_xs",
  "tq1_0",
  "tq2_0",
] as const;
const TYPES = [...SMALL_BLOCKS, ...BLOCKS_OF_256];
/** By day without an adapter, whose products are the same over every type. */
const RARE: readonly string[] = [
  "q2_K",
  "q3_K",
  "iq2_s",
  "iq3_xxs",
  "iq3_s",
  "iq4_nl",
  "iq4_xs",
  "mxfp4",
  "tq1_0",
  "tq2_0",
];

function shapeFor(type: (typeof TYPES)[number]): TinyModelOptions {
  if ((BLOCKS_OF_256 as readonly string[]).includes(type))
    return { embedding: 256, heads: 4, kvHeads: 2, headSize: 64, feedForward: 256, layers: 1, embeddingScale: 0.1 };
  return { embedding: 64, feedForward: 320, layers: 2, embeddingScale: 0.3 };
}

const prompts = Array.from({ length: 64 }, (_, i) => {
  const normal = makeNormals(300 + i);
  return Array.from({ length: 3 + ((i * 7) % 17) }, () => Math.abs(Math.floor(normal() * 997)) % 256);
});

async function generate(model: LlamaModel, i: number, maxTokens: number): Promise<GenerateResult> {
  const sequence = model.createSequence();
  const result = await sequence.generate(prompts[i]!, { maxTokens, temperature: 0.9, stopTokens: [], seed: i });
  sequence.dispose();
  return result;
}

/** Runs all prompts, in groups of each width. */
async function runInGroups(model: LlamaModel, widths: readonly number[], count = prompts.length, maxTokens = 6) {
  const results: GenerateResult[] = [];
  for (let group = 0; results.length < count; group++) {
    const width = Math.min(widths[group % widths.length]!, count - results.length);
    const first = results.length;
    results.push(
      ...(await Promise.all(Array.from({ length: width }, (_, k) => generate(model, first + k, maxTokens)))),
    );
    await model.flushCache();
  }
  return results.map(({ tokenIds, logprobs }) => ({ tokenIds: [...tokenIds], logprobs: [...logprobs] }));
}

const WIDTHS = [1, 2, 5, 7, 24, 25];
/** Number of the 64 conversations that are compared; by day one group of each width. */
const compared = amount(
  WIDTHS.reduce((sum, width) => sum + width),
  prompts.length,
);

describe("64 conversations at once have the bits of few and of each alone", () => {
  for (const type of TYPES) {
    for (const adapter of RARE.includes(type) && !isNightly ? [false] : [false, true]) {
      it(`${type}${adapter ? " with an adapter" : ""}`, async () => {
        const model = await models.load(
          { type, ...shapeFor(type) },
          { maxSequences: 64, contextSize: 64, ...(adapter ? { lora: { rank: 4, alpha: 8 } } : {}) },
        );
        if (adapter) await fillAdapter(model);
        const together = await runInGroups(model, [64]);
        expect(await runInGroups(model, WIDTHS, compared)).toEqual(together.slice(0, compared));
        await model.dispose();
      });
    }
  }
});

it.each([
  ["gemma3", "f32", 2],
  ["gemma3", "q8_0", 2],
  ["smollm3", "f32", 4],
  ["smollm3", "q8_0", 4],
  ["granite", "f32", 2],
  ["granite", "q8_0", 2],
  ["lfm2", "f32", 3],
  ["lfm2", "q8_0", 3],
  ["qwen35", "f32", 3],
  ["qwen35", "q8_0", 3],
  ["granitehybrid", "f32", 3],
  ["granitehybrid", "q8_0", 3],
  ["phi3", "f32", 2],
  ["phi3", "q8_0", 2],
  ["mistral3", "f32", 2],
  ["mistral3", "q8_0", 2],
  ["qwen3moe", "f32", 2],
  ["qwen3moe", "f16", 2],
  ["qwen3moe", "q8_0", 2],
  ["gpt-oss", "f32", 2],
  ["gpt-oss", "f16", 2],
  ["gpt-oss", "mxfp4", 2],
] as const)(
  "%s %s, with windows, sinks, without RoPE, with scales, convolutions and experts: the same",
  async (architecture, type, layers) => {
    const hasExperts = architecture === "qwen3moe" || architecture === "gpt-oss";
    const targets = hasExperts ? ["attn_q", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] : undefined;
    const model = await models.load(
      { ...shapeFor(type), architecture, type, layers },
      { maxSequences: 64, contextSize: 64, lora: { rank: 4, alpha: 8, targets } },
    );
    await fillAdapter(model);
    const together = await runInGroups(model, [64]);
    expect(await runInGroups(model, WIDTHS, compared)).toEqual(together.slice(0, compared));
    await model.dispose();
  },
);

// llama.cpp repacks weights of some types if a model only generates: not those that our products multiply.
const isPortable = process.env.CRIA_CPU_KERNEL === "portable" || process.arch !== "x64";
const COVERED = [
  "f32",
  "f16",
  "bf16",
  ...(isPortable ? [] : (["q8_0", "q4_0", "q5_1", "q4_K", "q6_K"] as const)),
] as const;
it.each(COVERED)("a model that only generates has the bits of one that trains: %s", async (type) => {
  const path = await models.write({ type, ...shapeFor(type) });
  const generating = await models.load({}, { path, maxSequences: 4, contextSize: 64, kvType: "f32" });
  const training = await models.load({}, { path, maxSequences: 4, contextSize: 64, lora: { rank: 4, alpha: 8 } });
  expect(await runInGroups(generating, [4], 8)).toEqual(await runInGroups(training, [4], 8));
});

// Short runs: with more threads than cores, threads wait for each other at every node of a graph, and spin. By day
// thread-count.test.ts tries three.
const THREADS = isNightly ? [1, 2, 3, 4] : [1, 2];
describe(`${THREADS.join(", ")} threads give the same bits`, () => {
  for (const type of ["f32", "q8_0", "q4_K"] as const) {
    it(`${type} with an adapter`, async () => {
      const path = await models.write({ type, ...shapeFor(type), layers: 1 });
      const results = [];
      for (const threads of THREADS) {
        const model = await models.load({}, { path, threads, contextSize: 64, lora: { rank: 4, alpha: 8 } });
        await fillAdapter(model);
        results.push(await runInGroups(model, [4], 4, 2));
        await model.dispose();
      }
      for (const result of results.slice(1)) expect(result).toEqual(results[0]);
    });
  }
});
