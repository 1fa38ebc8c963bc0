import type { GenerateOptions, GenerateResult } from "@cria/core";
import { amount } from "@cria/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LlamaSequence, LoadModelOptions } from "./index.js";
import { makeNormals, randomTokens, type TinyModelOptions, TinyModels, weightedLogprobs } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const SEED = Number(process.env.CRIA_SEED ?? 1);

function makeDraw(seed: number): (n: number) => number {
  const normal = makeNormals(seed);
  return (n) => Math.floor(Math.abs(normal()) * 99_991) % n;
}

/** The same weights without drafts and with them. */
async function loadBoth(tiny: TinyModelOptions, options: Omit<LoadModelOptions, "path"> = {}) {
  const path = await models.write(tiny);
  const load = (drafting: boolean | "always") =>
    models.load(tiny, { contextSize: 256, maxSequences: 6, ...options, path, drafting });
  return { plain: await load(false), drafting: await load("always") };
}

/** Everything of a result but its times. */
const describeResult = (result: GenerateResult) => ({
  tokenIds: [...result.tokenIds],
  logprobs: [...result.logprobs],
  constrained: result.constrained && [...result.constrained],
  top: result.topLogprobs,
  text: result.text,
  reason: result.finishReason,
  stop: result.stopString,
  counts: [result.stats.prefillTokens, result.stats.reusedTokens, result.stats.decodeTokens],
});

// Sampling from two tokens repeats itself soon, and still differs from seed to seed.
const narrow = { temperature: 1, topK: 2 };

async function converse(model: LlamaModel, seed: number, options: Partial<GenerateOptions>, turns = 3) {
  const sequence = model.createSequence();
  const results: GenerateResult[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const delta = randomTokens(4 + turn, 10 * (seed % 3) + turn);
    results.push(await sequence.generate(delta, { maxTokens: 20, stopTokens: [], seed: seed + turn, ...options }));
  }
  sequence.dispose();
  return results.map(describeResult);
}

/** Conversations at several temperatures, all twice: the second time earlier texts suggest every token. */
async function runEpochs(model: LlamaModel) {
  const all = [];
  for (let epoch = 0; epoch < 2; epoch++) {
    for (const options of [{ temperature: 0 }, { temperature: 0.7, topLogprobs: 3 }, narrow])
      all.push(await Promise.all([1, 2, 3, 4, 5, 6].map((seed) => converse(model, SEED + seed, options))));
  }
  // Time, not drafting, decides which of equal prompts that arrive together is evaluated.
  return all.flat(2).map(({ counts: [, , sampled], ...result }) => ({ ...result, sampled }));
}

const wide = { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.3 };
const q8 = { type: "q8_0", embedding: 64, feedForward: 64 } as const;
const isPortable = process.env.CRIA_CPU_KERNEL === "portable" || process.arch !== "x64";
const drafting: [string, TinyModelOptions, Omit<LoadModelOptions, "path">][] = [
  ["f32", {}, { kvType: "f32" }],
  ["f32 with two threads, f16 KV", {}, { kvType: "f16", threads: 2 }],
  ["gemma3, beyond its window", { architecture: "gemma3", embeddingScale: 0.1 }, {}],
  ["gpt-oss, beyond its window", { architecture: "gpt-oss", embeddingScale: 0.3 }, {}],
  ["phi3", { architecture: "phi3", embeddingScale: 0.3 }, {}],
  ["qwen3moe", { architecture: "qwen3moe", embeddingScale: 0.3 }, {}],
  ["f16", { type: "f16" }, {}],
  ["all weights trained", { tied: false }, { trainable: "full" }],
];
// Without AVX2 ggml multiplies by these.
if (!isPortable)
  drafting.push(["q8_0 with an adapter", q8, { lora: { rank: 4 } }], ["q4_K", { type: "q4_K", ...wide }, {}]);

describe("drafts are sampled as if each token were evaluated by itself", () => {
  it.each(drafting)("%s", async (_, tiny, options) => {
    const both = await loadBoth(tiny, options);
    const expected = await runEpochs(both.plain);
    expect(await runEpochs(both.drafting)).toEqual(expected);
    // Some were drawn, and some were not.
    const stats = both.drafting.schedulerStats();
    expect(stats.acceptedDraftTokens).toBeGreaterThan(0);
    expect(stats.draftTokens).toBeGreaterThan(stats.acceptedDraftTokens);
    expect(both.plain.schedulerStats()).toMatchObject({ draftTokens: 0, acceptedDraftTokens: 0 });
  });

  const never: [string, TinyModelOptions, Omit<LoadModelOptions, "path">][] = [
    ["recurrent layers", { architecture: "lfm2" }, {}],
    ["recurrent layers beside attention", { architecture: "qwen35" }, {}],
    ["rows that depend on their batch", {}, { flashAttention: true, kvType: "f16" }],
    ["products of ggml", { type: "q3_K", ...wide }, {}],
    ["positions in grids", { architecture: "qwen2vl" }, {}],
    ["no reuse", {}, { prefixReuse: false }],
  ];
  it.each(never)("%s: never", async (_, tiny, options) => {
    const both = await loadBoth(tiny, options);
    expect(await runEpochs(both.drafting)).toEqual(await runEpochs(both.plain));
    expect(both.drafting.schedulerStats().draftTokens).toBe(0);
  });
});

describe("a draft", () => {
  it("takes fewer evaluations where texts repeat, and is not tried where they do not", async () => {
    const both = await loadBoth({});
    const countCalls = async (model: LlamaModel) => {
      const before = model.schedulerStats().decodeCalls;
      await converse(model, 1, { temperature: 0, maxTokens: 60 });
      return model.schedulerStats().decodeCalls - before;
    };
    const calls = await countCalls(both.plain);
    expect(calls).toBe(180);
    await countCalls(both.drafting);
    expect(await countCalls(both.drafting)).toBeLessThan(calls / 2);

    // Nearly uniform: no three tokens come twice.
    const other = await loadBoth({ embeddingScale: 0.001 });
    const uniform = { temperature: 20, maxTokens: 100, stopTokens: [] };
    for (const model of [other.plain, other.drafting])
      await Promise.all(
        [1, 2, 3, 4, 5, 6].map((seed) => model.createSequence().generate(randomTokens(20, seed), { ...uniform, seed })),
      );
    expect(other.drafting.schedulerStats()).toMatchObject({
      draftTokens: 0,
      decodeTokens: other.plain.schedulerStats().decodeTokens,
    });
  });

  it("ends where the request ends: at its last token, a stop token, a stop string, the context", async () => {
    const both = await loadBoth({}, { contextSize: 64, maxSequences: 4 });
    const prompt = randomTokens(8, 5);
    const ask = async (model: LlamaModel, options: Partial<GenerateOptions>) => {
      const shown: string[] = [];
      const sequence = model.createSequence();
      const first = await sequence.generate(prompt, {
        ...{ maxTokens: 24, temperature: 0.7, stopTokens: [], seed: 3 },
        ...options,
        onText: (text) => shown.push(text),
      });
      // The next request sees the KV of exactly these tokens.
      const { tokenCount } = sequence;
      const next = await sequence.generate([7, 8], { maxTokens: 6, temperature: 0, stopTokens: [] });
      sequence.dispose();
      return { first: describeResult(first), shown: shown.join(""), tokenCount, next: describeResult(next) };
    };
    for (let i = 0; i < 3; i++) await ask(both.drafting, {});
    const { first } = await ask(both.plain, {});
    const requests: Partial<GenerateOptions>[] = [];
    for (let length = 1; length <= 24; length++) {
      requests.push({ maxTokens: length }, { stopTokens: [first.tokenIds[length - 1]!] });
      const text = both.plain.detokenize(first.tokenIds.slice(0, length));
      if (!text.includes("\ufffd")) requests.push({ stopStrings: [text.slice(-2)] });
    }
    for (const request of requests) expect(await ask(both.drafting, request)).toEqual(await ask(both.plain, request));
    const { acceptedDraftTokens } = both.drafting.schedulerStats();
    expect(acceptedDraftTokens).toBeGreaterThan(0);
  });

  it("fits into the cells of every sequence of its batch, whichever is full first", async () => {
    // 256 cells.
    const both = await loadBoth({}, { contextSize: 255 });
    const fill = (model: LlamaModel) =>
      Promise.all(
        [1, 2, 3, 4, 5].map(async (i) => {
          const sequence = model.createSequence();
          const options = { maxTokens: 256 - 50 * i, temperature: 0, stopTokens: [] };
          const result = describeResult(await sequence.generate(randomTokens(50 * i - 1, i), options));
          sequence.dispose();
          return { ...result, counts: [] };
        }),
      );
    for (let i = 0; i < 3; i++) expect(await fill(both.drafting)).toEqual(await fill(both.plain));
    expect(both.drafting.schedulerStats().acceptedDraftTokens).toBeGreaterThan(0);
  });

  it("of an aborted request leaves what was sampled, and nothing else", async () => {
    const both = await loadBoth({}, { contextSize: 1024 });
    const prompt = randomTokens(8, 6);
    const options = { maxTokens: 600, temperature: 0, stopTokens: [] };
    const whole = await both.plain.createSequence().generate(prompt, options);
    for (let i = 0; i < 8; i++) {
      const controller = new AbortController();
      const sequence = both.drafting.createSequence();
      let texts = 0;
      const cut = await sequence.generate(prompt, {
        ...options,
        signal: controller.signal,
        onText: () => ++texts > 5 * i && controller.abort(),
      });
      expect([...cut.tokenIds]).toEqual([...whole.tokenIds.slice(0, cut.tokenIds.length)]);
      const next = await sequence.generate([1, 2, 3], { maxTokens: 20, temperature: 1, stopTokens: [], seed: i });
      const said = [...prompt, ...cut.tokenIds, 1, 2, 3];
      const expected = await both.plain
        .createSequence()
        .generate(said, { maxTokens: 20, temperature: 1, stopTokens: [], seed: i });
      expect([...next.logprobs]).toEqual([...expected.logprobs]);
      expect([...next.tokenIds]).toEqual([...expected.tokenIds]);
      sequence.dispose();
    }
    expect(both.drafting.schedulerStats().acceptedDraftTokens).toBeGreaterThan(0);
  });

  it("mixes with drafts of other versions of the policy", async () => {
    const both = await loadBoth({ embeddingScale: 0.3 }, { lora: { rank: 4 }, maxSequences: 8 });
    const train = async (model: LlamaModel) => {
      const tokenIds = randomTokens(24, 4);
      const lossMask = tokenIds.map((_, t) => (t > 0 ? 1 : 0));
      const columns = { weights: tokenIds.map((_, t) => (t % 3) - 1) };
      await model.train([{ tokenIds, lossMask, columns }], weightedLogprobs, { learningRate: 0.02 });
    };
    const run = async (model: LlamaModel) => {
      const versions = [await model.keepVersion()];
      for (let i = 0; i < 2; i++) {
        await train(model);
        versions.push(await model.keepVersion());
      }
      const results = [];
      for (let epoch = 0; epoch < 3; epoch++) {
        const talks = [1, 2, 3, 4, 5, 6].map(async (seed) => {
          const sequence = versions[seed % 3]!.engine.createSequence();
          const options = { maxTokens: 30, stopTokens: [], seed, temperature: 0.7 };
          const turns = [await sequence.generate(randomTokens(6, 1), options), await sequence.generate([5], options)];
          sequence.dispose();
          return turns.map(describeResult).map(({ counts: _, ...result }) => result);
        });
        results.push(await Promise.all(talks));
      }
      for (const version of versions) await version.dispose();
      return results;
    };
    expect(await run(both.drafting)).toEqual(await run(both.plain));
    expect(both.drafting.schedulerStats().acceptedDraftTokens).toBeGreaterThan(0);
  });

  it("changes nothing of any requests in any order", async () => {
    const grammar = 'root ::= ("ab" | "c" [0-9] | " ")*';
    const run = async (model: LlamaModel) => {
      const draw = makeDraw(77 + SEED);
      const sequences: LlamaSequence[] = [];
      const log: unknown[] = [];
      for (let round = 0; round < amount(20, 200); round++) {
        const busy = new Set<LlamaSequence>();
        const asked = Array.from({ length: 1 + draw(6) }, async (_, i) => {
          // A new conversation, a turn, or a fork of one.
          const known = sequences.filter((one) => !busy.has(one) && one.tokenCount < 180);
          let sequence = known[draw(Math.max(1, known.length))];
          const fate = draw(4);
          if (!sequence || fate === 0) sequence = model.createSequence();
          else if (fate === 1) sequence = sequence.fork();
          busy.add(sequence);
          if (!sequences.includes(sequence)) sequences.push(sequence);
          const delta = randomTokens(1 + draw(5), draw(4));
          const kind = draw(8);
          const options: GenerateOptions = {
            maxTokens: 1 + draw(30),
            seed: draw(5),
            stopTokens: kind === 0 ? [10, 65] : [],
            topLogprobs: kind === 1 ? 4 : 0,
            ...[narrow, { temperature: 0 }, { temperature: 0.7, topP: 0.8 }, { temperature: 1, minP: 0.1 }][draw(4)],
            ...(kind === 2 ? { grammar } : {}),
            ...(kind === 3 ? { stopStrings: ["a", "zz", "é"] } : {}),
          };
          if (kind === 4) {
            await sequence.prefill(delta);
            return `prefilled ${i}`;
          }
          const { counts: _counts, ...result } = describeResult(await sequence.generate(delta, options));
          return result;
        });
        log.push(await Promise.all(asked));
        while (sequences.length > 10) sequences.splice(draw(sequences.length), 1)[0]!.dispose();
      }
      for (const sequence of sequences) sequence.dispose();
      return log;
    };
    const both = await loadBoth({}, { maxSequences: 4, contextSize: 256 });
    expect(await run(both.drafting)).toEqual(await run(both.plain));
    expect(both.drafting.schedulerStats().acceptedDraftTokens).toBeGreaterThan(0);
  });
});
