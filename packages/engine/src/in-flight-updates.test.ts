import { join } from "node:path";
import { type GenerateResult, loadImage, type PolicyVersion } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LlamaSequence, LoadModelOptions } from "./index.js";
import {
  drawPicture,
  makeTinyProjector,
  pairPrompt,
  randomTokens,
  type TinyModelOptions,
  TinyModels,
  visionPairs,
} from "./testing/index.js";

/** Sequences that another version goes on with, by the keys and values of the versions before. */
const models = new TinyModels();
afterAll(() => models.cleanUp());

const sampling = { maxTokens: 6, temperature: 0.9, stopTokens: [] };
const lora: Partial<LoadModelOptions> = { trainable: "lora", lora: { rank: 4 } };
const full: Partial<LoadModelOptions> = { trainable: "full" };
const wide = { embedding: 64, feedForward: 64, embeddingScale: 0.3 };
const bitsOf = ({ tokenIds, logprobs }: GenerateResult) => [[...tokenIds], [...logprobs]];

/** Moves every trained tensor, as an update does. */
async function update(model: LlamaModel, seed: number): Promise<void> {
  const tokenIds = randomTokens(24, seed);
  await model.train(
    [{ tokenIds, lossMask: tokenIds.map((_, t) => (t > 0 ? 1 : 0)) }],
    ({ logprobs }) => ({ loss: 0, dLogprobs: Float32Array.from(logprobs, () => -1) }),
    { learningRate: 0.02 },
  );
}

async function keepVersions(model: LlamaModel, count: number): Promise<PolicyVersion["engine"][]> {
  const versions: PolicyVersion["engine"][] = [];
  for (let step = 0; step < count; step++) {
    await update(model, step);
    versions.push((await model.keepVersion()).engine);
  }
  await update(model, count);
  return versions;
}

async function load(tiny: TinyModelOptions, options: Partial<LoadModelOptions>, count = 3) {
  const model = await models.load(tiny, { contextSize: 256, maxSequences: 8, ...options });
  return { model, versions: await keepVersions(model, count) };
}

type Engine = PolicyVersion["engine"];
const create = (engine: Engine) => engine.createSequence() as LlamaSequence;
const say = (sequence: LlamaSequence, turn: number) =>
  sequence.generate(randomTokens(5 + turn, 50 + turn), { ...sampling, seed: turn });

/** A conversation whose turns these versions sample, each with the KV of those before. */
async function converse(engines: readonly Engine[], between: () => Promise<unknown> = async () => {}) {
  const sequence = create(engines[0]!);
  const turns: GenerateResult[] = [];
  for (const [turn, engine] of engines.entries()) {
    if (engine !== engines[turn - 1] && turn > 0) sequence.goOnWith(engine);
    turns.push(await say(sequence, turn));
    await between();
  }
  sequence.dispose();
  return turns;
}

/** The answer of a version that evaluates a conversation's tokens again. */
async function askAgain(engine: Engine, tokens: readonly number[], turn: number) {
  const sequence = create(engine);
  const result = await sequence.generate([...tokens, ...randomTokens(5 + turn, 50 + turn)], {
    ...sampling,
    seed: turn,
  });
  sequence.dispose();
  return result;
}

const cases: [string, TinyModelOptions, Partial<LoadModelOptions>][] = [
  ["adapters over f32", { type: "f32" }, lora],
  ["adapters over q8_0", { type: "q8_0", ...wide }, lora],
  ["adapters over f16, rows that depend on their batch", { type: "f16" }, { ...lora, deterministic: false }],
  // ggml's own products: chunks are cut alike, and eight rows at least.
  ["adapters over q3_K", { type: "q3_K", ...wide, embedding: 256, heads: 8, headSize: 32, feedForward: 256 }, lora],
  [
    "adapters of experts",
    { architecture: "qwen3moe" },
    { trainable: "lora", lora: { rank: 4, targets: ["attn_v", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] } },
  ],
  ["adapters, layers with a state: lfm2", { architecture: "lfm2" }, lora],
  ["adapters, layers with a state: qwen35", { architecture: "qwen35" }, lora],
  ["adapters, layers with a state: granitehybrid", { architecture: "granitehybrid" }, lora],
  ["adapters, windows: gemma3", { architecture: "gemma3" }, lora],
  ["all weights", { type: "f32" }, full],
];

describe.each(cases)("a version that goes on with the KV of others, %s", (_, tiny, trained) => {
  it("evaluates only what is new, and samples otherwise than either version alone", async () => {
    const { versions } = await load(tiny, trained);
    const [first, second] = versions as [Engine, Engine];
    const sequence = create(first);
    const turn = await say(sequence, 0);
    const tokens = [...sequence.tokenIds];
    sequence.goOnWith(second);
    expect(sequence.tokenCount).toBe(tokens.length);
    const taken = await say(sequence, 1);
    expect([...sequence.tokenIds].slice(0, tokens.length)).toEqual(tokens);
    sequence.dispose();
    expect(taken.stats).toMatchObject({ reusedTokens: tokens.length - 1, prefillTokens: 1 + 6 });
    expect(turn.tokenIds).toHaveLength(6);
    for (const engine of [first, second]) expect(bitsOf(taken)).not.toEqual(bitsOf(await askAgain(engine, tokens, 1)));
  });

  it.each([1 << 24, 0])("comes back with the same bits after evictions, %d bytes for evicted KV", async (swapBytes) => {
    const { versions } = await load(tiny, trained);
    const [a, b, c] = versions as [Engine, Engine, Engine];
    const turns = [a, b, b, c, a];
    const expected = (await converse(turns)).map(bitsOf);
    const small = await load(tiny, { ...trained, maxSequences: 1, swapBytes });
    const places = turns.map((engine) => small.versions[versions.indexOf(engine)]!);
    // Rows of ggml's products make eight slots of one.
    const received = await converse(places, async () => {
      const others = Array.from({ length: 9 }, () => create(small.versions[2]!));
      for (const [i, other] of others.entries()) await say(other, i);
      for (const other of others) other.dispose();
    });
    // Rows whose bits depend on their batch are evaluated again in other batches.
    if (trained.deterministic === false) {
      expect(received.map(({ tokenIds }) => tokenIds.length)).toEqual(turns.map(() => 6));
      return;
    }
    expect(received.map(bitsOf)).toEqual(expected);
    expect(small.model.schedulerStats().evictions).toBeGreaterThan(0);
    expect(small.model.schedulerStats().sequences).toBe(0);
  });
});

// Vectors of an image may have one position, so that KV cannot be cut between them.
it.each(["SmolVLM", "Qwen2-VL", "Pixtral"])("a version goes on within an image: %s", async (name) => {
  const pair = visionPairs.find((each) => each.name === name)!;
  const mmproj = join(models.folder, `${name}.mmproj.gguf`);
  await makeTinyProjector(mmproj, pair.projector);
  const image = await loadImage({ bytes: drawPicture(pair.width, pair.height) });
  const received: unknown[] = [];
  for (const options of [{ maxSequences: 12 }, { maxSequences: 1, swapBytes: 0 }]) {
    const { model, versions } = await load(pair.model, { ...lora, ...options, mmproj });
    const [before, behind] = pairPrompt.map((text) => [...model.tokenize(text)]);
    const tokens = [...before!, ...model.images!.place(image).tokenIds, ...behind!];
    const last = tokens.findLastIndex((id) => id >= model.info.vocabSize);
    const sequence = create(versions[0]!);
    for (const [from, to, engine] of [
      [0, last, versions[1]],
      [last, tokens.length, versions[2]],
    ] as const) {
      await sequence.prefill(tokens.slice(from, to));
      sequence.goOnWith(engine!);
      const others = Array.from({ length: 9 }, () => create(versions[0]!));
      for (const other of others) await other.prefill([1, 2, 3]);
      for (const other of others) other.dispose();
    }
    received.push(bitsOf(await say(sequence, 1)));
    sequence.dispose();
    expect(model.schedulerStats().evictions > 0).toBe("swapBytes" in options);
  }
  expect(received[1]).toEqual(received[0]);
});

describe("a version that goes on with the KV of others", () => {
  it("has, where no key or value depends on the adapter, the bits of one that evaluates all anew", async () => {
    // In one layer keys and values depend on the embeddings and their own matrices alone.
    for (const [targets, isSame] of [
      [["attn_q", "ffn_down"], true],
      [["attn_k"], false],
      [["attn_v"], false],
    ] as const) {
      const { versions } = await load({ layers: 1 }, { trainable: "lora", lora: { rank: 4, targets: [...targets] } });
      const [first, second] = versions as [Engine, Engine];
      const sequence = create(first);
      await say(sequence, 0);
      const tokens = [...sequence.tokenIds];
      sequence.goOnWith(second);
      const taken = bitsOf(await say(sequence, 1));
      sequence.dispose();
      const again = bitsOf(await askAgain(second, tokens, 1));
      if (isSame) expect(taken).toEqual(again);
      else expect(taken).not.toEqual(again);
      expect(again).not.toEqual(bitsOf(await askAgain(first, tokens, 1)));
    }
  });

  it("forks, and the fork is taken over in its turn", async () => {
    const { model, versions } = await load({ type: "f32" }, lora);
    const [a, b, c] = versions as [Engine, Engine, Engine];
    const expected = (await converse([a, b, c])).map(bitsOf);
    const origin = create(a);
    await say(origin, 0);
    const early = origin.fork();
    origin.goOnWith(b);
    await say(origin, 1);
    const forks = [origin.fork(), origin.fork()];
    forks[0]!.goOnWith(c);
    expect(bitsOf(await say(forks[0]!, 2))).toEqual(expected[2]);
    expect(bitsOf(await say(forks[1]!, 2))).toEqual(bitsOf((await converse([a, b, b]))[2]!));
    early.goOnWith(b);
    expect(bitsOf(await say(early, 1))).toEqual(expected[1]);
    for (const sequence of [origin, early, ...forks]) sequence.dispose();
    expect(model.schedulerStats().sequences).toBe(0);
  });

  it("may take over what was only evaluated, an empty sequence, one that was reset, and twice without a turn", async () => {
    const { versions } = await load({ type: "f32" }, lora);
    const [a, b, c] = versions as [Engine, Engine, Engine];
    const expected = (await converse([a, c])).map(bitsOf);
    const sequence = create(b);
    sequence.goOnWith(a);
    await sequence.prefill(randomTokens(5, 50));
    const { tokenIds } = await sequence.generate([], { ...sampling, seed: 0 });
    expect([...tokenIds]).toEqual(expected[0]![0]);
    sequence.goOnWith(b);
    sequence.goOnWith(c);
    expect(bitsOf(await say(sequence, 1))).toEqual(expected[1]);
    // Its last token was evaluated by one, and is by the other.
    const [again, prefilled] = [create(a), create(a)];
    await again.generate(randomTokens(5, 50), { ...sampling, seed: 0 });
    await prefilled.prefill([...again.tokenIds]);
    for (const each of [again, prefilled]) each.goOnWith(c);
    expect(bitsOf(await say(prefilled, 1))).toEqual(expected[1]);
    sequence.reset();
    expect(bitsOf(await say(sequence, 0))).toEqual(bitsOf((await converse([c]))[0]!));
    for (const each of [sequence, again, prefilled]) each.dispose();
  });

  it("is refused for the live policy, for other models, while generating, and after its version is gone", async () => {
    const { model, versions } = await load({ type: "f32" }, lora);
    const other = await load({ type: "f32" }, lora, 1);
    const [a, b] = versions as [Engine, Engine];
    const [kept, live] = [create(a), model.createSequence()];
    const code = (name: string) => expect.objectContaining({ code: `engine/${name}` });
    expect(() => live.goOnWith(a)).toThrow(code("live-version"));
    expect(() => kept.goOnWith(model)).toThrow(code("live-version"));
    expect(() => kept.goOnWith(other.versions[0]!)).toThrow(code("live-version"));
    const running = say(kept, 0);
    expect(() => kept.goOnWith(b)).toThrow(code("sequence-busy"));
    await running;
    const dropped = await model.keepVersion();
    await dropped.dispose();
    expect(() => kept.goOnWith(dropped.engine)).toThrow(code("unknown-version"));
    kept.dispose();
    expect(() => kept.goOnWith(b)).toThrow(code("disposed"));
    live.dispose();
  });

  it("keeps the versions that its KV is of in use", async () => {
    const { model } = await load({ type: "f32" }, lora, 0);
    const [first, second] = [await model.keepVersion(), await model.keepVersion()];
    const sequence = create(first.engine);
    await say(sequence, 0);
    sequence.goOnWith(second.engine);
    const fork = sequence.fork();
    sequence.dispose();
    for (const version of [first, second])
      await expect(version.dispose()).rejects.toMatchObject({ code: "engine/version-in-use" });
    fork.dispose();
    for (const version of [first, second]) await version.dispose();
  });

  // Conversations by their own draws of what happens to them: alone with a slot for each, and at once with two slots.
  it.each(["llama", "lfm2"] as const)("has equal bits in any company and any order, %s", async (architecture) => {
    const options = { architecture, type: "f32" } as const;
    const [roomy, tight] = [
      await load(options, lora),
      await load(options, { ...lora, maxSequences: 2, swapBytes: 20_000 }),
    ];
    const hold = async ({ versions }: typeof roomy, seed: number) => {
      const bits: unknown[] = [];
      const draws = randomTokens(48, seed);
      let sequence = create(versions[draws[0]! % 3]!);
      for (let turn = 0; turn < 6; turn++) {
        const [what = 0, which = 0] = draws.slice(2 * turn);
        if (turn > 0 && what % 2 === 0) sequence.goOnWith(versions[which % 3]!);
        if (what % 5 === 0) {
          const fork = sequence.fork();
          sequence.dispose();
          sequence = fork;
        }
        if (what % 7 === 0) await sequence.prefill(randomTokens(3, seed + turn));
        bits.push(bitsOf(await say(sequence, turn)));
      }
      sequence.dispose();
      return bits;
    };
    const seeds = Array.from({ length: 16 }, (_, seed) => seed + 1);
    const expected: unknown[] = [];
    for (const seed of seeds) expected.push(await hold(roomy, seed));
    expect(await Promise.all(seeds.map((seed) => hold(tight, seed)))).toEqual(expected);
    expect(tight.model.schedulerStats().evictions).toBeGreaterThan(0);
  });
});
