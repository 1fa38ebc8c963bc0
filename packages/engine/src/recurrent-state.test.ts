import type { GenerateResult } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LlamaSequence } from "./index.js";
import { TinyModels } from "./testing/index.js";

/**
 * Models with layers that keep a state instead of their past (LFM2, Qwen3.5, Granite hybrid, Mamba): a state cannot be
 * cut back to fewer tokens, and every row of a batch changes one.
 */
const models = new TinyModels();
afterAll(() => models.cleanUp());

const prompt = [72, 101, 108, 108, 111, 44, 32, 119];
const others = [87, 104, 121, 63, 32, 78, 111, 119, 33];
const sampling = { maxTokens: 6, temperature: 0.8, stopTokens: [], seed: 5 };
type Architecture = "lfm2" | "qwen35" | "granitehybrid";
const load = (
  architecture: Architecture,
  type: "f32" | "q8_0" | "q4_0",
  options: Parameters<TinyModels["load"]>[1] = {},
) => models.load({ architecture, type, embedding: 64, feedForward: 64, embeddingScale: 0.3 }, options);

/** The tokens and logprobs of an answer. */
const bitsOf = ({ tokenIds, logprobs }: GenerateResult) => [[...tokenIds], [...logprobs]];

/** The answer of a new sequence to these tokens. */
async function askFresh(model: LlamaModel, tokens: readonly number[], more: object = {}): Promise<GenerateResult> {
  const sequence = model.createSequence();
  const result = await sequence.generate(tokens, { ...sampling, ...more });
  sequence.dispose();
  return result;
}

const say = (sequence: LlamaSequence, tokens: readonly number[], more: object = {}) =>
  sequence.generate(tokens, { ...sampling, ...more });

describe.each([
  ["lfm2", "f32"],
  ["lfm2", "q8_0"],
  ["qwen35", "f32"],
  ["qwen35", "q8_0"],
  ["granitehybrid", "f32"],
  ["granitehybrid", "q8_0"],
] as const)("layers with a state: %s, %s weights, default options", (architecture, type) => {
  it("answer again and again: a conversation, its fork, its origin, and another one", async () => {
    const model = await load(architecture, type);
    const fresh = await load(architecture, type, { maxSequences: 1 });
    const origin = model.createSequence();
    const first = await say(origin, prompt);
    expect(bitsOf(first)).toEqual(bitsOf(await askFresh(fresh, prompt)));
    const whole = [...prompt, ...first.tokenIds];
    const fork = origin.fork();
    const second = await say(fork, others);
    expect(second.stats.reusedTokens).toBe(whole.length - 1);
    const third = await say(origin, others, { seed: 6 });
    expect(bitsOf(second)).toEqual(bitsOf(await askFresh(fresh, [...whole, ...others])));
    expect(bitsOf(third)).toEqual(bitsOf(await askFresh(fresh, [...whole, ...others], { seed: 6 })));
    expect(bitsOf(await askFresh(model, others))).toEqual(bitsOf(await askFresh(fresh, others)));
    expect((await say(fork, prompt)).stats.prefillTokens).toBe(prompt.length + 1);
  });

  it("a fork that begins after its origin went on is evaluated anew", async () => {
    const model = await load(architecture, type);
    const origin = model.createSequence();
    const first = await say(origin, prompt);
    const fork = origin.fork();
    await say(origin, others);
    const late = await say(fork, others, { seed: 7 });
    expect(late.stats.reusedTokens).toBe(0);
    const expected = await askFresh(model, [...prompt, ...first.tokenIds, ...others], { seed: 7 });
    expect(bitsOf(late)).toEqual(bitsOf(expected));
  });

  it("go on alone and together, with any slots between them", async () => {
    const model = await load(architecture, type);
    const sequences = [0, 1, 2].map(() => model.createSequence());
    const begun = await Promise.all(sequences.map((sequence, i) => say(sequence, prompt, { seed: i })));
    const texts = begun.map(({ tokenIds }) => [...prompt, ...tokenIds]);
    // One by itself, then the first and the last with an idle one between them, then all.
    for (const speaking of [[0], [0, 2], [1], [0, 1, 2]]) {
      const results = await Promise.all(speaking.map((i) => say(sequences[i]!, others, { seed: 10 + i })));
      for (const [k, i] of speaking.entries()) {
        texts[i]!.push(...others);
        // The last sampled token and the new ones: no state was lost.
        expect([i, results[k]!.stats.prefillTokens]).toEqual([i, others.length + 1]);
        expect([i, bitsOf(results[k]!)]).toEqual([i, bitsOf(await askFresh(model, texts[i]!, { seed: 10 + i }))]);
        texts[i]!.push(...results[k]!.tokenIds);
      }
    }
  });

  it("fork before and after the first token, which is sampled from the same logits", async () => {
    const model = await load(architecture, type);
    const sequence = model.createSequence();
    const first = await say(sequence, prompt, { maxTokens: 1 });
    const fork = sequence.fork();
    const [a, b] = [await say(sequence, []), await say(fork, [])];
    expect(bitsOf(b)).toEqual(bitsOf(a));
    expect(bitsOf(await askFresh(model, [...prompt, ...first.tokenIds]))).toEqual(bitsOf(a));
  });

  it("come back after an eviction, with and without room for the evicted state", async () => {
    for (const swapBytes of [1 << 24, 0]) {
      const model = await load(architecture, type, { maxSequences: 1, swapBytes });
      const [a, b] = [model.createSequence(), model.createSequence()];
      const first = await say(a, prompt);
      await say(b, others);
      const again = await say(a, others);
      expect(bitsOf(again)).toEqual(bitsOf(await askFresh(model, [...prompt, ...first.tokenIds, ...others])));
      expect((await say(b, prompt)).tokenIds).toHaveLength(sampling.maxTokens);
    }
  });

  it("survive aborts and flushes", async () => {
    const model = await load(architecture, type);
    const sequence = model.createSequence();
    const abort = new AbortController();
    const cut = say(sequence, prompt, { maxTokens: 60, signal: abort.signal, onText: () => abort.abort() });
    await cut.catch(() => undefined);
    await say(sequence, others);
    await model.flushCache();
    const again = await askFresh(model, prompt);
    expect(again.tokenIds).toHaveLength(sampling.maxTokens);
    const another = await load(architecture, type);
    expect(bitsOf(await askFresh(another, prompt))).toEqual(bitsOf(again));
  });
});

it("layers with a state and weights of ggml's products answer alike in any company, but for rounding", async () => {
  const model = await load("lfm2", "q4_0");
  const sequences = [0, 1, 2].map(() => model.createSequence());
  const texts: number[][] = [[], [], []];
  for (const speaking of [[0, 1, 2], [0], [0, 2], [1]]) {
    const asked = { maxTokens: 1, temperature: 1 };
    const results = await Promise.all(speaking.map((i) => say(sequences[i]!, others, asked)));
    for (const [k, i] of speaking.entries()) {
      texts[i]!.push(...others);
      const alone = await askFresh(model, texts[i]!, asked);
      expect(Math.abs(results[k]!.logprobs[0]! - alone.logprobs[0]!)).toBeLessThan(0.02);
      texts[i]!.push(...results[k]!.tokenIds);
    }
  }
});
