import type { GenerateResult } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "./index.js";
import { makeNormals, randomTokens, type TinyModelOptions, TinyModels, weightedLogprobs } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const sampling = { maxTokens: 12, temperature: 0.9, stopTokens: [] };

/** Evaluates a whole prompt in a new sequence. */
async function ask(model: LlamaModel, prompt: readonly number[], seed: number, options = {}): Promise<GenerateResult> {
  const sequence = model.createSequence();
  const result = await sequence.generate(prompt, { ...sampling, seed, ...options });
  sequence.dispose();
  return result;
}

function expectSameBits(received: GenerateResult, expected: GenerateResult): void {
  expect([...received.tokenIds]).toEqual([...expected.tokenIds]);
  expect([...received.logprobs]).toEqual([...expected.logprobs]);
}

/** Conversations of a stateless server's client: each turn sends everything so far. */
async function converse(model: LlamaModel, seed: number, turns: number) {
  const results: GenerateResult[] = [];
  let whole: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    whole = [...whole, ...randomTokens(5 + 3 * turn, 1000 * seed + turn)];
    const result = await ask(model, whole, seed + turn);
    results.push(result);
    whole = [...whole, ...result.tokenIds];
  }
  return { results, length: whole.length };
}

type Case = [string, TinyModelOptions, Parameters<TinyModels["load"]>[1]];
const isPortable = process.env.CRIA_CPU_KERNEL === "portable" || process.arch !== "x64";
const mxfp4Experts: Case = [
  "gpt-oss mxfp4",
  { architecture: "gpt-oss", type: "mxfp4", embedding: 64, feedForward: 64, embeddingScale: 0.3 },
  { kvType: "f32" },
];
const wide = { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.3 };
const cases: Case[] = [
  ["f32", { type: "f32" }, { kvType: "f32" }],
  ["f32, one KV head for each query head", { heads: 2, kvHeads: 2 }, { kvType: "f32" }],
  ["llama with factors of RoPE", { architecture: "llama", ropeFactors: true }, { kvType: "f32" }],
  ["gemma3, beyond its window", { architecture: "gemma3" }, { kvType: "f32" }],
  ["smollm3", { architecture: "smollm3" }, { kvType: "f32" }],
  ["mistral3", { architecture: "mistral3", embeddingScale: 0.3 }, { kvType: "f32" }],
  ["phi3", { architecture: "phi3", embeddingScale: 0.3 }, { kvType: "f32" }],
  ["granite", { architecture: "granite", embeddingScale: 0.3 }, { kvType: "f32" }],
  ["qwen3moe", { architecture: "qwen3moe", embeddingScale: 0.3 }, { kvType: "f32" }],
  ["gpt-oss", { architecture: "gpt-oss", embeddingScale: 0.3 }, { kvType: "f32" }],
  // Without AVX2 ggml multiplies by these experts, whose rows then depend on their batch: prompts share whole chunks only.
  ...(isPortable ? [] : [mxfp4Experts]),
  [
    "gemma3 q8_0 with an adapter",
    { architecture: "gemma3", type: "q8_0", embedding: 64, feedForward: 64 },
    { lora: { rank: 4 } },
  ],
  ["f32, f16 KV", { type: "f32" }, { kvType: "f16" }],
  ["f16", { type: "f16" }, { kvType: "f32" }],
  // Sums of 320 products are added in two blocks.
  ["f32, long sums", { type: "f32", feedForward: 320 }, { kvType: "f32" }],
  ["f16, long sums", { type: "f16", feedForward: 320 }, { lora: { rank: 4 } }],
  ["q8_0, long sums", { type: "q8_0", embedding: 64, feedForward: 320 }, { lora: { rank: 4 } }],
  ["bf16", { type: "bf16" }, { kvType: "f32" }],
  ["q8_0", { type: "q8_0", embedding: 64, feedForward: 64 }, { kvType: "f32" }],
  ["q8_0 with an adapter", { type: "q8_0", embedding: 64, feedForward: 64 }, { lora: { rank: 4 } }],
  ["q4_0", { type: "q4_0", embedding: 64, feedForward: 64 }, { kvType: "f32" }],
  ["q4_K", { type: "q4_K", ...wide }, { kvType: "f32" }],
  ["q4_K with an adapter", { type: "q4_K", ...wide }, { lora: { rank: 4 } }],
  ["q6_K, f16 KV", { type: "q6_K", ...wide }, { kvType: "f16" }],
];

describe("a reused prefix has the bits of a fresh evaluation", () => {
  for (const [name, tiny, options] of cases) {
    it(name, async () => {
      const load = (prefixReuse: boolean) =>
        models.load(tiny, { contextSize: 256, maxSequences: 6, prefixReuse, ...options });
      const [reusing, fresh] = await Promise.all([load(true), load(false)]);
      // Whole prompts of concurrent conversations: prefixes end anywhere, also within sampled text.
      const run = (model: LlamaModel) => Promise.all([1, 2, 3, 4, 5].map((seed) => converse(model, seed, 4)));
      const [received, expected] = [await run(reusing), await run(fresh)];
      received.forEach(({ results }, i) => {
        results.forEach((result, turn) => {
          expectSameBits(result, expected[i]!.results[turn]!);
        });
        // The last sampled token and the new ones: everything else was cached.
        expect(results.map((r) => r.stats.prefillTokens)).toEqual([5, 9, 12, 15]);
      });
      expect(expected[0]!.results.map((r) => r.stats.reusedTokens)).toEqual([0, 0, 0, 0]);
    });
  }

  it("in chunks, where rows differ by their batch", async () => {
    const load = (prefixReuse: boolean) =>
      models.load({}, { contextSize: 256, prefillChunk: 16, flashAttention: true, kvType: "f16", prefixReuse });
    const [reusing, fresh] = await Promise.all([load(true), load(false)]);
    const prompt = randomTokens(70, 1);
    await ask(reusing, prompt, 1);
    for (const [length, reused] of [
      [70, 64],
      [64, 48],
      [65, 64],
      [15, 0],
    ] as const) {
      const part = [...prompt.slice(0, length), ...randomTokens(3, length)];
      if (length === 64) part.length = 64;
      const result = await ask(reusing, part, 9);
      expect(result.stats.reusedTokens).toBe(reused);
      expectSameBits(result, await ask(fresh, part, 9));
    }
  });
});

describe("equal prompts that arrive together", () => {
  it("are evaluated once, and sampled from as if alone", async () => {
    const model = await models.load({}, { maxSequences: 8, prefillChunk: 16, contextSize: 256 });
    const prompt = randomTokens(100, 3);
    const results = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((seed) => ask(model, prompt, seed)));
    expect(model.schedulerStats().prefillTokens).toBe(100);
    expect(model.schedulerStats().reusedTokens).toBe(700);
    expect(results.map((r) => r.stats.prefillTokens)).toEqual([100, 0, 0, 0, 0, 0, 0, 0]);
    const fresh = await models.load({}, { prefixReuse: false, contextSize: 256 });
    for (const [i, result] of results.entries()) expectSameBits(result, await ask(fresh, prompt, i + 1));
  });

  it("share their common tokens, with fewer slots than prompts too", async () => {
    for (const maxSequences of [8, 3]) {
      const model = await models.load({}, { maxSequences, contextSize: 256 });
      const common = randomTokens(60, 4);
      const prompts = Array.from({ length: 8 }, (_, i) => [...common, 200 + i, ...randomTokens(9, i)]);
      await Promise.all(prompts.map((prompt, i) => ask(model, prompt, i)));
      expect(model.schedulerStats().prefillTokens).toBe(60 + 8 * 10);
    }
  });

  it("go on when the one that evaluates is aborted, disposed of, or ends early", async () => {
    const prompt = randomTokens(1600, 5);
    const fresh = await models.load({ layers: 4 }, { prefixReuse: false, prefillChunk: 4, contextSize: 2048 });
    const seeds = [2, 3, 4];
    const expected: Awaited<ReturnType<typeof ask>>[] = [];
    for (const seed of seeds) expected.push(await ask(fresh, prompt, seed));
    for (const end of ["abort", "dispose", "aborted before it began"] as const) {
      const model = await models.load({ layers: 4 }, { maxSequences: 8, prefillChunk: 4, contextSize: 2048 });
      const controller = new AbortController();
      const first = model.createSequence();
      if (end === "aborted before it began") controller.abort();
      const running = first.generate(prompt, { ...sampling, seed: 1, signal: controller.signal });
      const others = seeds.map((seed) => ask(model, prompt, seed));
      // It has begun, with 400 chunks left.
      while (model.schedulerStats().prefillTokens === 0) await new Promise(setImmediate);
      if (end === "abort") controller.abort();
      if (end === "dispose") first.dispose();
      const [ended, ...results] = await Promise.all([running, ...others]);
      expect(ended!.finishReason).toBe("aborted");
      // Tokens that the aborted request had evaluated were not evaluated again.
      expect(model.schedulerStats().prefillTokens).toBe(1600);
      for (const [i, result] of results.entries()) expectSameBits(result!, expected[i]!);
    }
  });
});

describe("resident sequences", () => {
  it("give their prefix to forks, fresh sequences and reset ones, running or idle", async () => {
    const model = await models.load({}, { maxSequences: 8, contextSize: 256 });
    const prompt = randomTokens(40, 6);
    const root = model.createSequence();
    const first = await root.generate(prompt, { ...sampling, seed: 1 });
    const whole = [...prompt, ...first.tokenIds];
    const running = root.generate([7], { ...sampling, maxTokens: 60, seed: 2 });
    const [forked, asked] = await Promise.all([
      ask(model, [...whole.slice(0, -1), 9], 3),
      ask(model, [...whole, 7, 8], 4),
    ]);
    expect(forked.stats.reusedTokens).toBe(51);
    expect(asked.stats.reusedTokens).toBeGreaterThanOrEqual(51);
    await running;
    const fork = root.fork();
    const next = await fork.generate([3], { ...sampling, seed: 5 });
    expect(next.stats.prefillTokens).toBe(2);
    root.reset();
    expect(root.tokenCount).toBe(0);
    const again = await root.generate(prompt, { ...sampling, seed: 1 });
    expect(again.stats).toMatchObject({ prefillTokens: 1, reusedTokens: 39 });
    expectSameBits(again, first);
  });

  it("a sequence that generates cannot be reset", async () => {
    const model = await models.load({}, { maxSequences: 1, contextSize: 4096 });
    const sequence = model.createSequence();
    const controller = new AbortController();
    const running = sequence.generate([1], { ...sampling, maxTokens: 4000, seed: 2, signal: controller.signal });
    expect(() => sequence.reset()).toThrow(expect.objectContaining({ code: "engine/sequence-busy" }));
    controller.abort();
    expect((await running).finishReason).toBe("aborted");
    sequence.reset();
    expect(sequence.tokenCount).toBe(0);
  });

  it("a conversation that goes on is not cut for one that shares its beginning", async () => {
    const model = await models.load({}, { maxSequences: 3, contextSize: 256 });
    const prompt = randomTokens(30, 7);
    const { tokenIds } = await ask(model, prompt, 1, { maxTokens: 30 });
    const sibling = await ask(model, prompt, 2);
    expect(sibling.stats.prefillTokens).toBe(0);
    const next = await ask(model, [...prompt, ...tokenIds, 5], 3);
    expect(next.stats.prefillTokens).toBe(2);
  });

  it("make room for others, the longest unused first; nothing but time is lost", async () => {
    for (const swapBytes of [1 << 30, 0]) {
      const model = await models.load({}, { maxSequences: 3, contextSize: 256, swapBytes });
      const fresh = await models.load({}, { prefixReuse: false, contextSize: 256 });
      const prompts = Array.from({ length: 6 }, (_, i) => randomTokens(20 + i, 40 + i));
      // Kept sequences are saved or evaluated again; finished ones are overwritten.
      const kept = prompts.map((prompt) => ({ prompt, sequence: model.createSequence() }));
      const firsts = await Promise.all(
        kept.map(({ prompt, sequence }, i) => sequence.generate(prompt, { ...sampling, seed: i })),
      );
      for (const [i, { prompt, sequence }] of kept.entries()) {
        const next = await sequence.generate([i, 1, 2], { ...sampling, seed: 50 + i });
        expectSameBits(next, await ask(fresh, [...prompt, ...firsts[i]!.tokenIds, i, 1, 2], 50 + i));
        expectSameBits(await ask(model, prompt, i), firsts[i]!);
      }
      expect(model.schedulerStats().evictions).toBeGreaterThan(0);
      kept.forEach(({ sequence }) => {
        sequence.dispose();
      });
      await ask(model, prompts[0]!, 1);
      await ask(model, prompts[1]!, 1);
      const others = await Promise.all([70, 71].map((seed) => ask(model, randomTokens(30, seed), 1)));
      expect(others.map((r) => r.stats.reusedTokens)).toEqual([0, 0]);
      // Two of the three slots were taken: the last prompt is still cached, the one before is not.
      expect((await ask(model, prompts[1]!, 1)).stats.prefillTokens).toBe(0);
      expect((await ask(model, prompts[0]!, 1)).stats.reusedTokens).toBe(0);
    }
  });

  it("are copied before a saved state takes the place of the source", async () => {
    for (const forkFirst of [true, false]) {
      const options = { maxSequences: 2, contextSize: 256 };
      const model = await models.load({}, options);
      const fresh = await models.load({}, { ...options, prefixReuse: false });
      const make = (count: number) => ({ prompt: randomTokens(count, count), sequence: model.createSequence() });
      const [saved, idle, last] = [make(20), make(30), make(40)];
      const said = new Map<object, number[]>();
      for (const one of [saved, idle, last]) {
        const { tokenIds } = await one.sequence.generate(one.prompt, { ...sampling, seed: 1 });
        said.set(one, [...one.prompt, ...tokenIds]);
      }
      // `idle` and `last` hold both slots. In one admission the fork copies one slot into the other's, and `saved` is
      // restored into the slot that was copied from.
      const fork = idle.sequence.fork();
      const forked = () => fork.generate([5, 6], { ...sampling, seed: 2 });
      const restored = () => saved.sequence.generate([7, 8], { ...sampling, seed: 3 });
      const results = await Promise.all(forkFirst ? [forked(), restored()] : [restored(), forked()]);
      const [ofFork, ofSaved] = forkFirst ? results : results.toReversed();
      expectSameBits(ofFork!, await ask(fresh, [...said.get(idle)!, 5, 6], 2));
      expectSameBits(ofSaved!, await ask(fresh, [...said.get(saved)!, 7, 8], 3));
      expect(model.schedulerStats().restores).toBe(1);
    }
  });

  it("are forgotten when weights change", async () => {
    const model = await models.load({}, { lora: { rank: 4 }, contextSize: 256 });
    const prompt = randomTokens(40, 8);
    const before = await ask(model, prompt, 1);
    expect((await ask(model, prompt, 1)).stats.prefillTokens).toBe(0);
    const tokenIds = [...prompt, ...before.tokenIds];
    const lossMask = tokenIds.map((_, i) => (i > 0 ? 1 : 0));
    const weights = tokenIds.map((_, i) => (i % 3) - 1);
    await model.train([{ tokenIds, lossMask, columns: { weights } }], weightedLogprobs, { learningRate: 0.05 });
    const after = await ask(model, prompt, 1);
    expect(after.stats).toMatchObject({ prefillTokens: 40, reusedTokens: 0 });
    expect([...after.logprobs]).not.toEqual([...before.logprobs]);
  });

  it("give the longest prefix that any of them holds", async () => {
    const model = await models.load({}, { maxSequences: 80, contextSize: 64 });
    const normal = makeNormals(5);
    const draw = (n: number) => Math.floor(Math.abs(normal()) * 1000) % n;
    const prompts: number[][] = [];
    for (let i = 0; i < 80; i++) {
      // Few different tokens, so that prompts branch everywhere and contain each other.
      const base = i > 0 && draw(3) > 0 ? prompts[draw(i)]! : [];
      const prompt = [
        ...base.slice(0, draw(base.length + 1)),
        ...Array.from({ length: 1 + draw(9) }, () => draw(3)),
      ].slice(0, 50);
      const common = prompts.map((other) => {
        const different = prompt.findIndex((token, t) => token !== other[t]);
        return different < 0 ? prompt.length : different;
      });
      const known = prompts.some((other) => String(other) === String(prompt));
      const { stats } = await model.createSequence().generate(prompt, { ...sampling, maxTokens: 1, seed: i });
      // A prompt that only occurs as another's beginning: its logits are not cached.
      const expected = Math.min(Math.max(0, ...common), known ? prompt.length : prompt.length - 1);
      expect(stats).toMatchObject({ reusedTokens: expected, prefillTokens: prompt.length - expected });
      prompts.push(prompt);
    }
  });

  it("have the results of a model without reuse, for any requests in any order", async () => {
    const options = { maxSequences: 4, contextSize: 256, prefillChunk: 24 };
    const model = await models.load({}, options);
    const fresh = await models.load({}, { ...options, prefixReuse: false });
    const normal = makeNormals(99);
    const draw = (n: number) => Math.floor(Math.abs(normal()) * 1000) % n;
    const known: number[][] = [randomTokens(50, 1), randomTokens(30, 2)];
    for (let round = 0; round < 12; round++) {
      // Several prompts at once that begin with parts of earlier text.
      const prompts = Array.from({ length: 1 + draw(6) }, () => {
        const base = known[draw(known.length)]!;
        return [...base.slice(0, 1 + draw(base.length)), ...randomTokens(draw(12), draw(5))].slice(0, 200);
      });
      const run = (m: LlamaModel) =>
        Promise.all(prompts.map((prompt, i) => ask(m, prompt, 100 * round + i, { maxTokens: 4 })));
      const [received, expected] = [await run(model), await run(fresh)];
      received.forEach((result, i) => {
        expectSameBits(result, expected[i]!);
        expect(result.stats.prefillTokens + result.stats.reusedTokens).toBe(prompts[i]!.length);
        known.push([...prompts[i]!, ...result.tokenIds]);
      });
    }
    // The amount depends on the order in which requests got slots.
    const { reusedTokens, prefillTokens } = model.schedulerStats();
    expect(reusedTokens).toBeGreaterThan(prefillTokens / 2);
  });
});
