import type { GenerateOptions } from "@cria/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "./index.js";
import { TinyModels } from "./testing/index.js";

const models = new TinyModels();
const prompt = [72, 105, 33, 10, 65];
const count = 20;
let model: LlamaModel;

beforeAll(async () => {
  model = await models.load({ embedding: 64, feedForward: 64, embeddingScale: 0.3 }, { lora: { rank: 4 } });
});
afterAll(() => models.cleanUp());

async function generate(options: Partial<GenerateOptions>) {
  const sequence = model.createSequence();
  try {
    return await sequence.generate(prompt, { maxTokens: 6, stopTokens: [], seed: 3, ...options });
  } finally {
    sequence.dispose();
  }
}

/** Logprobs of every token of the vocabulary after a prefix, by the trainer's forward pass. */
async function scoreAll(prefix: readonly number[], temperature: number): Promise<number[]> {
  const sequences = Array.from({ length: model.info.vocabSize }, (_, id) => ({
    tokenIds: [...prefix, id],
    from: prefix.length,
  }));
  const scores = await model.score(sequences, { temperature });
  return scores.map(({ logprobs }) => logprobs[prefix.length]!);
}

const ways: [string, Partial<GenerateOptions>, number][] = [
  ["the whole distribution", { temperature: 0.8 }, 0.8],
  ["before the cuts", { temperature: 1.3, topK: 3, topP: 0.5, minP: 0.1 }, 1.3],
  ["greedy, at temperature 1", { temperature: 0 }, 1],
];

describe("topLogprobs", () => {
  it.each(ways)("%s: those that score() finds the likeliest", async (_, options, temperature) => {
    const result = await generate({ ...options, topLogprobs: count });
    expect(result.topLogprobs).toHaveLength(result.tokenIds.length);
    for (const t of [0, result.tokenIds.length - 1]) {
      const all = await scoreAll([...prompt, ...result.tokenIds.subarray(0, t)], temperature);
      const expected = [...all.keys()].sort((a, b) => all[b]! - all[a]! || a - b).slice(0, count);
      const found = result.topLogprobs![t]!;
      expect(found.map(({ id }) => id)).toEqual(expected);
      found.forEach(({ id, logprob }) => {
        expect(Math.abs(logprob - all[id]!)).toBeLessThan(1e-5);
      });
      expect(found.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)).toBeLessThan(1);
    }
  });

  it("include the sampled token's own logprob if it is among them, and change nothing", async () => {
    const plain = await generate({ temperature: 0.8 });
    const result = await generate({ temperature: 0.8, topLogprobs: 64 });
    expect(plain).not.toHaveProperty("topLogprobs");
    expect([result.tokenIds, result.logprobs]).toEqual([plain.tokenIds, plain.logprobs]);
    const own = Array.from(result.tokenIds, (id, t) => result.topLogprobs![t]!.find((one) => one.id === id)?.logprob);
    expect(own.filter((logprob) => logprob !== undefined).length).toBeGreaterThan(0);
    own.forEach((logprob, t) => {
      if (logprob !== undefined) expect(logprob).toBe(result.logprobs[t]);
    });
    const few = await generate({ temperature: 0.8, topLogprobs: 3 });
    expect(few.topLogprobs).toEqual(result.topLogprobs!.map((list) => list.slice(0, 3)));
  });

  it("with a grammar: allowed tokens only, and all of them if they are fewer", async () => {
    const [result, free] = await Promise.all([
      generate({ grammar: 'root ::= ("d" | "b" | "a") .*', maxTokens: 1, topLogprobs: count }),
      scoreAll(prompt, 1),
    ]);
    const allowed = ["a", "b", "d"].map((text) => model.tokenize(text)[0]!);
    const found = result.topLogprobs![0]!;
    expect(found.map(({ id }) => id).sort()).toEqual(allowed.sort());
    expect(found.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 5);
    const mass = Math.log(allowed.reduce((sum, id) => sum + Math.exp(free[id]!), 0));
    for (const { id, logprob } of found) expect(logprob).toBeCloseTo(free[id]! - mass, 4);
  });

  it("refuses a wrong number", async () => {
    const bad = { code: "engine/bad-option", subject: "generate.topLogprobs" };
    await expect(generate({ topLogprobs: 65 })).rejects.toMatchObject(bad);
    await expect(generate({ topLogprobs: -1 })).rejects.toMatchObject(bad);
  });
});

it("names the text that ended a turn", async () => {
  const letters = { maxTokens: 20, grammar: "root ::= [a-z]{20}" };
  const { text } = await generate(letters);
  const [first, second] = [text.slice(4, 6), text.slice(8, 10)];
  const stopped = await generate({ ...letters, stopStrings: [second, first] });
  expect(stopped).toMatchObject({ finishReason: "stop", stopString: first, text: text.slice(0, text.indexOf(first)) });
  expect(await generate({ ...letters, stopStrings: ["no such text"] })).not.toHaveProperty("stopString");
});
