import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LlamaSequence, LoadModelOptions } from "./index.js";
import { writeGguf } from "./index.js";
import {
  describeTinyModel,
  fillAdapter,
  makeNormals,
  randomTokens,
  TinyModels,
  textArchitectures,
  weightedLogprobs,
} from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const sampling = { maxTokens: 12, temperature: 0.9, stopTokens: [] };

async function generateAlone(model: LlamaModel, prompt: number[], seed: number) {
  const sequence = model.createSequence();
  const result = await sequence.generate(prompt, { ...sampling, seed });
  sequence.dispose();
  return result;
}

function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  let worst = 0;
  for (let i = 0; i < a.length; i++) worst = Math.max(worst, Math.abs(a[i]! - b[i]!));
  return worst;
}

it("tokenizes beside the event loop as on it", async () => {
  const model = await models.load();
  const text = "a bb <|im_end|> é ".repeat(2000);
  for (const special of [true, false])
    expect(await model.tokenizeAside(text, { special })).toEqual(model.tokenize(text, { special }));
  // The model is disposed of meanwhile: the call ends first, or fails.
  const late = model.tokenizeAside(text).catch((error: unknown) => String(error));
  await model.dispose();
  expect(await late).toSatisfy((result: unknown) => typeof result !== "string" || result.includes("disposed"));
  await expect(model.tokenizeAside(text)).rejects.toMatchObject({ code: "engine/disposed", subject: "model" });
});

it.each([
  ["FunctionGemma", "<start_function_response>"],
  ["GLM", "<|observation|>"],
  ["Apertus", "<|tools_suffix|>"],
  ["Kimi K3", "<|end_of_msg|>"],
])("a turn ends at a token that llama.cpp does not know as an end: that of %s", async (_, end) => {
  const model = await models.load({ controlTokens: [end, "<start_function_call>"] });
  const ends = model.info.endOfGenerationTokens;
  expect(ends).toContain(model.tokenize(end)[0]);
  expect(ends).not.toContain(model.tokenize("<start_function_call>")[0]);
  expect((await models.load()).info.endOfGenerationTokens).toEqual(ends.slice(0, -1));
});

/** Types whose products are ours only with kernels that have integers. */
const inIntegers = ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "mxfp4", "q4_K", "q5_K", "q6_K"] as const;
/** Layers with a state: llama.cpp's operations decode them, ours train them. */
const withState: readonly string[] = ["qwen35", "granitehybrid"];
const isPortable = process.env.CRIA_CPU_KERNEL === "portable" || process.arch !== "x64";

describe("logprobs", () => {
  for (const architecture of textArchitectures) {
    const types = withState.includes(architecture) ? (["q8_0", "q4_0", "q4_K"] as const) : inIntegers;
    for (const type of ["f32", "f16", "bf16", ...types] as const) {
      it(`${architecture} ${type}: score() equals what decode reported`, async () => {
        // Gemma multiplies embeddings again, and its head is tied.
        const scale = architecture === "gemma3" ? 0.1 : 0.3;
        const shape = type.endsWith("K")
          ? { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: scale }
          : { embedding: 64, feedForward: 64, embeddingScale: scale };
        const model = await models.load({ architecture, type, ...shape }, { lora: { rank: 4, alpha: 8 } });
        const prompt = randomTokens(9, 4);
        const { tokenIds, logprobs } = await generateAlone(model, prompt, 7);
        const whole = [...prompt, ...tokenIds];
        const [score] = await model.score([{ tokenIds: whole, from: prompt.length }], {
          temperature: 0.9,
          entropy: true,
        });
        const scored = score!.logprobs.slice(prompt.length);
        const isInteger = (inIntegers as readonly string[]).includes(type);
        const differs = withState.includes(architecture) || (isPortable && isInteger);
        expect(model.info.samplesAsTrained).toBe(!differs);
        if (differs) expect(maxDifference(scored, logprobs)).toBeLessThan(type === "f32" ? 1e-5 : 2e-2);
        else expect(scored).toEqual(logprobs);
        expect(Math.min(...score!.entropy!.slice(prompt.length))).toBeGreaterThan(0);
      });
    }
  }

  it.each([
    ["keys and values in F16", { kvType: "f16" }],
    ["keys and values in Q8_0", { kvType: "q8_0" }],
    ["flash attention", { flashAttention: true }],
    ["deterministic: false", { deterministic: false }],
    ["nothing that trains", { lora: null, trainable: "none" }],
  ] as const)("are not said to be the trainer's with %s", async (_, options) => {
    const shape = { architecture: "llama", embedding: 128, heads: 2, headSize: 64 } as const;
    expect((await models.load(shape, { lora: { rank: 4 } })).info.samplesAsTrained).toBe(true);
    expect((await models.load(shape, { lora: { rank: 4 }, ...options })).info.samplesAsTrained).toBe(false);
  });

  it("llama: factors of RoPE", async () => {
    const options = { architecture: "llama", embeddingScale: 0.3 } as const;
    const model = await models.load({ ...options, ropeFactors: true }, { lora: { rank: 4 } });
    const prompt = randomTokens(40, 4);
    const { tokenIds, logprobs } = await generateAlone(model, prompt, 7);
    const whole = [{ tokenIds: [...prompt, ...tokenIds], from: prompt.length }];
    const [score] = await model.score(whole, { temperature: 0.9 });
    expect(maxDifference(score!.logprobs.slice(prompt.length), logprobs)).toBeLessThan(1e-5);
    const without = await models.load(options, { lora: { rank: 4 } });
    const [other] = await without.score(whole, { temperature: 0.9 });
    expect(maxDifference(score!.logprobs.slice(prompt.length), other!.logprobs.slice(prompt.length))).toBeGreaterThan(
      1e-4,
    );
  });

  it("YaRN, of an architecture that is usually without it", async () => {
    const tiny = { architecture: "qwen3", embeddingScale: 0.3 } as const;
    const file = describeTinyModel(tiny);
    file.metadata["qwen3.rope.scaling.type"] = { type: "string", value: "yarn" };
    file.metadata["qwen3.rope.scaling.factor"] = { type: "float32", value: 4 };
    file.metadata["qwen3.rope.scaling.original_context_length"] = { type: "uint32", value: 128 };
    const path = join(models.folder, "yarn.gguf");
    await writeGguf(path, file);
    const model = await models.load({}, { path, lora: { rank: 4 } });
    const prompt = randomTokens(40, 4);
    const { tokenIds, logprobs } = await generateAlone(model, prompt, 7);
    const whole = [{ tokenIds: [...prompt, ...tokenIds], from: prompt.length }];
    const [score] = await model.score(whole, { temperature: 0.9 });
    expect(maxDifference(score!.logprobs.slice(prompt.length), logprobs)).toBeLessThan(1e-5);
    const plain = await models.load(tiny, { lora: { rank: 4 } });
    const [other] = await plain.score(whole, { temperature: 0.9 });
    expect(maxDifference(other!.logprobs.slice(prompt.length), logprobs)).toBeGreaterThan(1e-4);
  });

  it.each([
    ["qwen3moe", "f32"],
    ["qwen3moe", "q8_0"],
    ["gpt-oss", "f32"],
    ["gpt-oss", "mxfp4"],
  ] as const)("%s %s: with an adapter of experts and router", async (architecture, type) => {
    const shape = { architecture, type, embedding: 64, feedForward: 64, embeddingScale: 0.3 } as const;
    const targets = ["attn_q", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"];
    const model = await models.load(shape, { lora: { rank: 4, alpha: 12, targets } });
    const prompt = randomTokens(9, 4);
    const untrained = await generateAlone(model, prompt, 7);
    await fillAdapter(model);
    const { tokenIds, logprobs } = await generateAlone(model, prompt, 7);
    expect([...logprobs]).not.toEqual([...untrained.logprobs]);
    const [score] = await model.score([{ tokenIds: [...prompt, ...tokenIds], from: prompt.length }], {
      temperature: 0.9,
    });
    const scored = score!.logprobs.slice(prompt.length);
    if (isPortable && type !== "f32") expect(maxDifference(scored, logprobs)).toBeLessThan(2e-2);
    else expect(scored).toEqual(logprobs);
  });

  it("qwen3moe: experts that are equally likely are chosen as llama.cpp does", async () => {
    const file = describeTinyModel({ architecture: "qwen3moe", experts: { count: 24, used: 5 }, embeddingScale: 0.3 });
    // Experts i and i + 8 have the same logits.
    for (const { name, data } of file.tensors)
      if (name.endsWith("ffn_gate_inp.weight")) for (const i of data.keys()) data[i] = data[i % (data.length / 3)]!;
    const path = join(models.folder, "ties.gguf");
    await writeGguf(path, file);
    const model = await models.load({}, { path, lora: { rank: 4 } });
    const prompt = randomTokens(40, 4);
    const { tokenIds, logprobs } = await generateAlone(model, prompt, 7);
    const [score] = await model.score([{ tokenIds: [...prompt, ...tokenIds], from: prompt.length }], {
      temperature: 0.9,
    });
    expect(score!.logprobs.slice(prompt.length)).toEqual(logprobs);
  });

  it("phi3: the factors of RoPE are chosen by the context, for decoding and for training", async () => {
    const path = await models.write({ architecture: "phi3", originalContext: 32, embeddingScale: 0.3 });
    const load = (options: Omit<LoadModelOptions, "path">) => models.load({}, { path, lora: { rank: 4 }, ...options });
    const decode = async (contextSize: number) => {
      const model = await load({ contextSize });
      const prompt = randomTokens(20, 4);
      const { tokenIds, logprobs } = await generateAlone(model, prompt, 7);
      const sequence = { tokenIds: [...prompt, ...tokenIds], from: prompt.length };
      expect(sequence.tokenIds.length).toBeLessThanOrEqual(32);
      const [score] = await model.score([sequence], { temperature: 0.9 });
      expect(maxDifference(score!.logprobs.slice(prompt.length), logprobs)).toBeLessThan(1e-5);
      return { sequence, logprobs };
    };
    // llama.cpp's cache has 256 cells for both, more than the original context.
    const [short, long] = [await decode(32), await decode(33)];
    const critic = await load({ contextSize: 32, scoredContextSize: 33 });
    const score = async (model: LlamaModel, { sequence }: typeof short) =>
      (await model.score([sequence], { temperature: 0.9 }))[0]!.logprobs.slice(sequence.from);
    expect(maxDifference(await score(critic, long), long.logprobs)).toBeLessThan(1e-5);
    expect(maxDifference(await score(critic, short), short.logprobs)).toBeGreaterThan(1e-4);
  });

  it("phi3: a window that llama.cpp leaves out bounds the context of training", async () => {
    const path = await models.write({ architecture: "phi3", slidingWindow: 40 });
    const load = (options: Omit<LoadModelOptions, "path">) => models.load({}, { path, ...options });
    await load({ contextSize: 40, lora: { rank: 4 } });
    await load({ contextSize: 41 });
    for (const options of [{ contextSize: 41 }, { contextSize: 32, scoredContextSize: 41 }]) {
      await expect(load({ ...options, lora: { rank: 4 } })).rejects.toMatchObject({
        code: "engine/unsupported-architecture",
        expected: expect.stringContaining("40"),
        received: "41",
      });
    }
  });

  it("gemma3: windows that begin within blocks of the trainer's attention", async () => {
    const model = await models.load(
      { architecture: "gemma3", slidingWindow: 50, embeddingScale: 0.1 },
      { contextSize: 512, lora: { rank: 4 } },
    );
    const tokenIds = randomTokens(420, 4);
    const sequence = model.createSequence();
    const { tokenIds: sampled, logprobs } = await sequence.generate(tokenIds, { ...sampling, maxTokens: 60, seed: 3 });
    const [score] = await model.score([{ tokenIds: [...tokenIds, ...sampled], from: 420 }], { temperature: 0.9 });
    expect(score!.logprobs.slice(420)).toEqual(logprobs);
    const wider = await models.load(
      { architecture: "gemma3", slidingWindow: 51, embeddingScale: 0.1 },
      { contextSize: 512, lora: { rank: 4 } },
    );
    const [other] = await wider.score([{ tokenIds: [...tokenIds, ...sampled], from: 420 }], { temperature: 0.9 });
    expect(maxDifference(score!.logprobs.slice(420), other!.logprobs.slice(420))).toBeGreaterThan(1e-4);
  });

  // The bounds that LoadModelOptions.kvType documents for F32 weights.
  const agreement: [string, object, number, number][] = [
    ["the default", { lora: { rank: 4, alpha: 8 } }, 0, 0],
    ["a LoRA scale that is no power of two", { lora: { rank: 3, alpha: 5 } }, 0, 0],
    ["full training", { trainable: "full" }, 0, 0],
    ["not deterministic", { lora: { rank: 4 }, deterministic: false }, 0, 1e-5],
    ["F16 keys and values", { lora: { rank: 4 }, kvType: "f16" }, 1e-5, 2e-2],
    ["flash attention", { lora: { rank: 4 }, flashAttention: true }, 1e-5, 2e-2],
  ];
  it.each(agreement)("%s: decode and score() agree as documented", async (_, options, least, most) => {
    const model = await models.load({ embedding: 64, feedForward: 64, embeddingScale: 0.3 }, options);
    const target = randomTokens(20, 3);
    const lossMask = target.map((_, t) => (t > 0 ? 1 : 0));
    const columns = { weights: target.map(() => -1) };
    // Two steps make the adapter non-zero.
    for (let step = 0; step < 2; step++)
      await model.train([{ tokenIds: target, lossMask, columns }], weightedLogprobs, { learningRate: 1e-2 });
    const prompt = randomTokens(30, 4);
    const decoded = await Promise.all([1, 2, 3].map((seed) => generateAlone(model, prompt, seed)));
    const whole = decoded.map(({ tokenIds }) => ({ tokenIds: [...prompt, ...tokenIds], from: prompt.length }));
    // Scored together they share the prompt.
    const together = await model.score(whole, { temperature: 0.9 });
    const alone = await Promise.all(whole.map(async (one) => (await model.score([one], { temperature: 0.9 }))[0]!));
    const differences = [together, alone].flatMap((scores) =>
      scores.map(({ logprobs }, i) => maxDifference(logprobs.slice(prompt.length), decoded[i]!.logprobs)),
    );
    expect(Math.max(...differences)).toBeLessThanOrEqual(most);
    if (least > 0) expect(Math.max(...differences)).toBeGreaterThan(least);
  });

  // Published models (Qwen2.5) have key biases of 150, and F16 keeps such keys to an eighth.
  it("F32 keys of any size agree with score(), F16 ones the less the larger they are", async () => {
    const measure = async (kvType: "f32" | "f16", bias: number) => {
      const { metadata, tensors } = describeTinyModel({ architecture: "qwen2", embeddingScale: 0.3 });
      const normal = makeNormals(11);
      for (const { name, data } of tensors) if (name.endsWith("attn_k.bias")) data.set(data.map(() => bias * normal()));
      const path = join(models.folder, "biases.gguf");
      await writeGguf(path, { metadata, tensors });
      const model = await models.load({}, { path, lora: { rank: 2 }, kvType });
      const prompt = randomTokens(30, 4);
      const { tokenIds, logprobs } = await generateAlone(model, prompt, 1);
      const [score] = await model.score([{ tokenIds: [...prompt, ...tokenIds], from: 30 }], { temperature: 0.9 });
      return maxDifference(score!.logprobs.slice(30), logprobs);
    };
    expect([await measure("f32", 1), await measure("f32", 150)]).toEqual([0, 0]);
    expect(await measure("f16", 150)).toBeGreaterThan(5 * (await measure("f16", 1)));
  });

  it("packed rows score like single sequences", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 } });
    const prefix = randomTokens(12, 1);
    const sequences = [3, 8, 5, 6].map((n, i) => ({ tokenIds: [...prefix, ...randomTokens(n, 10 + i)] }));
    const together = await model.score(sequences, { entropy: true });
    for (const [i, sequence] of sequences.entries()) {
      const [alone] = await model.score([sequence], { entropy: true });
      expect(maxDifference(together[i]!.logprobs, alone!.logprobs)).toBeLessThan(1e-5);
      expect(maxDifference(together[i]!.entropy!, alone!.entropy!)).toBeLessThan(1e-5);
    }
  });
});

describe("determinism", () => {
  for (const type of ["f32", "f16", "q8_0", "q4_K"] as const) {
    it(`${type}: tokens and logprobs do not depend on neighbours in the batch, bit for bit`, async () => {
      const shape =
        type === "q4_K"
          ? { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.3 }
          : { embedding: 64, feedForward: 64, embeddingScale: 0.3 };
      const model = await models.load({ type, ...shape }, { maxSequences: 24 });
      const prompts = Array.from({ length: 24 }, (_, i) => randomTokens(3 + ((i * 7) % 19), 100 + i));
      const together = await Promise.all(prompts.map((prompt, i) => generateAlone(model, prompt, i)));
      for (const width of [1, 2, 5, 11]) {
        await model.flushCache();
        for (let i = 0; i < 6; i += width) {
          const some = await Promise.all(
            prompts.slice(i, i + width).map((prompt, k) => generateAlone(model, prompt, i + k)),
          );
          some.forEach((result, k) => {
            expect([...result.tokenIds]).toEqual([...together[i + k]!.tokenIds]);
            expect([...result.logprobs]).toEqual([...together[i + k]!.logprobs]);
          });
        }
      }
    });
  }
});

describe("sequences", () => {
  async function runTurns(sequence: LlamaSequence, seed: number) {
    const turns = [];
    for (let turn = 0; turn < 3; turn++) {
      turns.push(await sequence.generate(randomTokens(4, 50 + turn), { ...sampling, maxTokens: 6, seed: seed + turn }));
    }
    return turns;
  }

  it("evaluates every token once over turns", async () => {
    const model = await models.load();
    const sequence = model.createSequence();
    const turns = await runTurns(sequence, 1);
    expect(turns.map((t) => t.stats.prefillTokens)).toEqual([4, 5, 5]);
    expect(turns.map((t) => t.stats.reusedTokens)).toEqual([0, 9, 19]);
    expect(sequence.tokenCount).toBe(30);
  });

  it("forks share the prompt, and continue as undisturbed sequences do", async () => {
    const model = await models.load({}, { maxSequences: 8 });
    const prompt = randomTokens(20, 3);
    const undisturbed = await Promise.all([1, 2, 3].map((seed) => generateAlone(model, prompt, seed)));
    await model.flushCache();
    const before = model.schedulerStats();
    const root = model.createSequence();
    await root.prefill(prompt);
    const forks = [1, 2, 3].map(() => root.fork());
    root.dispose();
    const results = await Promise.all(forks.map((fork, i) => fork.generate([], { ...sampling, seed: i + 1 })));
    const after = model.schedulerStats();
    expect(after.prefillTokens - before.prefillTokens).toBe(prompt.length);
    results.forEach((result, i) => {
      expect([...result.tokenIds]).toEqual([...undisturbed[i]!.tokenIds]);
      expect([...result.logprobs]).toEqual([...undisturbed[i]!.logprobs]);
      expect(result.stats.prefillTokens).toBe(0);
    });
  });

  for (const swapBytes of [1 << 30, 0]) {
    it(`evicted sequences (${swapBytes ? "saved" : "recomputed"}) continue as undisturbed ones`, async () => {
      const model = await models.load({}, { maxSequences: 2, swapBytes, kvType: "f32" });
      const calm = await models.load({}, { maxSequences: 8, kvType: "f32" });
      const expected = await Promise.all([0, 1, 2, 3, 4].map((i) => runTurns(calm.createSequence(), 10 * i)));
      const got = await Promise.all([0, 1, 2, 3, 4].map((i) => runTurns(model.createSequence(), 10 * i)));
      expect(model.schedulerStats().evictions).toBeGreaterThan(0);
      got.forEach((turns, i) => {
        turns.forEach((turn, t) => {
          expect([...turn.tokenIds]).toEqual([...expected[i]![t]!.tokenIds]);
          expect([...turn.logprobs]).toEqual([...expected[i]![t]!.logprobs]);
        });
      });
    });
  }

  it("a fork and an evicted sequence that come back at the same time each get their own KV", async () => {
    const model = await models.load({}, { maxSequences: 2, kvType: "f32" });
    const calm = await models.load({}, { maxSequences: 1, kvType: "f32" });
    for (let round = 0; round < 5; round++) {
      const [early, prompt] = [randomTokens(30, round), randomTokens(30, 100 + round)];
      const expected = await generateAlone(calm, prompt, round);
      const evicted = model.createSequence();
      await evicted.generate(early, { ...sampling, seed: 1 });
      const root = model.createSequence();
      await root.prefill(prompt);
      // Takes the slot of the first sequence, which is saved, and leaves the slot free for the fork; the saved one then
      // takes the root's.
      await generateAlone(model, [1, 2, 3], 1);
      const fork = root.fork();
      const [result] = await Promise.all([
        fork.generate([], { ...sampling, seed: round }),
        evicted.generate([5, 6], { ...sampling, seed: 2 }),
      ]);
      expect([...result.tokenIds]).toEqual([...expected.tokenIds]);
      expect([...result.logprobs]).toEqual([...expected.logprobs]);
      for (const sequence of [evicted, root, fork]) sequence.dispose();
    }
    expect(model.schedulerStats()).toMatchObject({ sequences: 0, residentSequences: 0, requests: 0, swappedBytes: 0 });
  });

  it("move together when others between them end; idle ones keep their KV", async () => {
    const model = await models.load({}, { maxSequences: 16, contextSize: 128, prefixReuse: false });
    const undisturbed = await models.load({}, { maxSequences: 1, contextSize: 128, prefixReuse: false });
    const prompts = Array.from({ length: 16 }, (_, i) => randomTokens(4 + i, 50 + i));
    const sequences = prompts.map(() => model.createSequence());
    // Every third one continues after the others have ended, and comes back idle.
    const run = (sequence: LlamaSequence, i: number) =>
      sequence.generate(prompts[i]!, { ...sampling, maxTokens: i % 3 === 0 ? 40 : 3, seed: i });
    const results = await Promise.all(sequences.map(run));
    const again = (sequence: LlamaSequence, i: number) => sequence.generate([7], { ...sampling, seed: 100 + i });
    const later = await Promise.all(sequences.map(again));
    const { movedSequences, paddingTokens, prefillTokens } = model.schedulerStats();
    // The count depends on the order of arrival.
    expect(movedSequences).toBeGreaterThan(0);
    expect(paddingTokens).toBeLessThan(60);
    // The last sampled token and the new one: nothing else was evaluated again.
    expect(prefillTokens).toBe(prompts.flat().length + 2 * 16);
    for (const i of prompts.keys()) {
      const sequence = undisturbed.createSequence();
      for (const [received, expected] of [
        [results[i]!, await run(sequence, i)],
        [later[i]!, await again(sequence, i)],
      ] as const) {
        expect([...received.tokenIds]).toEqual([...expected.tokenIds]);
        expect([...received.logprobs]).toEqual([...expected.logprobs]);
      }
      sequence.dispose();
    }
  });

  it("refuses requests that cannot fit, with numbers", async () => {
    const model = await models.load();
    const sequence = model.createSequence();
    await expect(sequence.generate(randomTokens(100, 1), { maxTokens: 40 })).rejects.toMatchObject({
      code: "engine/context-exceeded",
      received: "0 in the sequence + 100 new + 40 to sample = 140",
    });
    await expect(sequence.generate([999999], { maxTokens: 1 })).rejects.toMatchObject({
      code: "engine/bad-token",
      subject: "deltaTokenIds",
    });
    await expect(sequence.generate([], { maxTokens: 1 })).rejects.toMatchObject({ code: "engine/empty-request" });
    const bad = (option: string) => ({ code: "engine/bad-option", subject: `generate.${option}` });
    await expect(sequence.generate([1], { maxTokens: 0 })).rejects.toMatchObject(bad("maxTokens"));
    const temperature = Number.NaN;
    await expect(sequence.generate([1], { maxTokens: 1, temperature })).rejects.toMatchObject(bad("temperature"));
  });
});

describe("stops", () => {
  it("ends at stop tokens and stop strings, and streams whole text", async () => {
    const model = await models.load();
    const free = await generateAlone(model, [1, 2, 3], 5);
    const stop = free.tokenIds[4]!;
    const first = free.tokenIds.indexOf(stop);
    const stopped = await model.createSequence().generate([1, 2, 3], { ...sampling, seed: 5, stopTokens: [stop] });
    expect(stopped.finishReason).toBe("stop");
    expect([...stopped.tokenIds]).toEqual([...free.tokenIds.slice(0, first + 1)]);
    expect(stopped.text).toBe(model.detokenize(free.tokenIds.slice(0, first)));

    const ascii = await model.createSequence().generate([1, 2, 3], { ...sampling, seed: 5 });
    const cut = ascii.text.slice(3, 5);
    const chunks: string[] = [];
    const byText = await model
      .createSequence()
      .generate([1, 2, 3], { ...sampling, seed: 5, stopStrings: [cut], onText: (text) => chunks.push(text) });
    expect(byText.finishReason).toBe("stop");
    expect(byText.text).toBe(ascii.text.slice(0, ascii.text.indexOf(cut)));
    expect(chunks.join("")).toBe(byText.text);
  });

  it("greedy takes the likeliest token", async () => {
    const model = await models.load();
    const a = await model.createSequence().generate([5, 6], { maxTokens: 8, temperature: 0, stopTokens: [] });
    const b = await model
      .createSequence()
      .generate([5, 6], { maxTokens: 8, temperature: 1, topK: 1, seed: 9, stopTokens: [] });
    expect([...a.tokenIds]).toEqual([...b.tokenIds]);
  });

  it("an AbortSignal ends a request and keeps its tokens", async () => {
    const model = await models.load({}, { contextSize: 4096 });
    const sequence = model.createSequence();
    const controller = new AbortController();
    const { signal } = controller;
    const onText = () => controller.abort();
    const result = await sequence.generate([1, 2], { maxTokens: 4000, seed: 1, stopTokens: [], signal, onText });
    expect(result.finishReason).toBe("aborted");
    expect(result.tokenIds.length).toBeLessThan(4000);
    expect(sequence.tokenCount).toBe(2 + result.tokenIds.length);
    const next = await sequence.generate([7], { maxTokens: 2, seed: 1, stopTokens: [] });
    expect(next.tokenIds.length).toBe(2);
  });
});

describe("sampling follows the distribution", () => {
  it("frequencies over many draws match the scored probabilities", async () => {
    const model = await models.load({ embeddingScale: 3 }, { maxSequences: 32 });
    const root = model.createSequence();
    await root.prefill([10, 20, 30]);
    const draws = 4000;
    const counts = new Map<number, { n: number; logprob: number }>();
    const forks = Array.from({ length: draws }, () => root.fork());
    const results = await Promise.all(
      forks.map((fork, seed) => fork.generate([], { maxTokens: 1, seed, stopTokens: [] })),
    );
    for (const { tokenIds, logprobs } of results) {
      const entry = counts.get(tokenIds[0]!) ?? { n: 0, logprob: logprobs[0]! };
      entry.n++;
      counts.set(tokenIds[0]!, entry);
    }
    for (const { n, logprob } of counts.values()) {
      const p = Math.exp(logprob);
      // Five standard deviations of a binomial, and a little for rare tokens.
      expect(Math.abs(n - draws * p)).toBeLessThan(5 * Math.sqrt(draws * p * (1 - p)) + 3);
    }
  });
});
