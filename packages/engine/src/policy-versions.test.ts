import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GenerateResult, PolicyEngine, PolicyVersion } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LoadModelOptions } from "./index.js";
import { randomTokens, type TinyModelOptions, TinyModels, textArchitectures } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** Moves every trained tensor, as an update does. */
async function update(model: LlamaModel, seed: number): Promise<void> {
  const tokenIds = randomTokens(24, seed);
  const lossMask = tokenIds.map((_, t) => (t > 0 ? 1 : 0));
  await model.train(
    [{ tokenIds, lossMask }],
    ({ logprobs }) => ({ loss: 0, dLogprobs: Float32Array.from(logprobs, () => -1) }),
    { learningRate: 0.02 },
  );
}

interface Conversation {
  results: GenerateResult[];
  /** Tokens that each turn did not have to evaluate. */
  reused: number[];
}

/** Turns of one sequence. */
async function converse(engine: PolicyEngine, seed: number, turns = 4): Promise<Conversation> {
  const sequence = engine.createSequence();
  const results: GenerateResult[] = [];
  for (let turn = 0; turn < turns; turn++)
    results.push(
      await sequence.generate(randomTokens(6 + turn, 100 * seed + turn), {
        maxTokens: 10,
        temperature: 0.9,
        stopTokens: [],
        seed: seed + turn,
      }),
    );
  sequence.dispose();
  return { results, reused: results.map(({ stats }) => stats.reusedTokens) };
}

const bits = ({ results }: Conversation) => results.map((r) => [[...r.tokenIds], [...r.logprobs]]);

const wide = { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.3 };
const lora: Partial<LoadModelOptions> = { trainable: "lora", lora: { rank: 4 } };
const full: Partial<LoadModelOptions> = { trainable: "full" };
const cases: [string, TinyModelOptions, Partial<LoadModelOptions>][] = [
  ["adapters over f32", { type: "f32" }, lora],
  ["adapters over f16", { type: "f16" }, lora],
  ["adapters over q8_0", { type: "q8_0", embedding: 64, feedForward: 64 }, lora],
  ["adapters over q4_K", { type: "q4_K", ...wide }, lora],
  // ggml's own products: eight rows at least.
  ["adapters over q3_K", { type: "q3_K", ...wide }, lora],
  [
    "adapters of experts",
    { architecture: "qwen3moe" },
    { trainable: "lora", lora: { rank: 4, targets: ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] } },
  ],
  ["all weights", { type: "f32" }, full],
  ["all weights, the output's among them", { type: "f32", tied: false }, full],
];

describe.each(cases)("kept versions of a policy, %s", (_, tiny, trained) => {
  const load = (maxSequences = 8) => models.load(tiny, { ...trained, contextSize: 256, maxSequences });

  it("sample as the policy did when they were kept, in any company, while training goes on", async () => {
    const model = await load();
    const seeds = [1, 2, 3];
    const expected: unknown[][] = [];
    const versions: PolicyVersion[] = [];
    for (let step = 0; step < 3; step++) {
      if (step > 0) await update(model, step);
      versions.push(await model.keepVersion!());
      expected.push((await Promise.all(seeds.map((seed) => converse(model, seed)))).map(bits));
    }
    // The versions differ: the updates changed what is sampled.
    expect(expected[1]).not.toEqual(expected[0]);
    expect(expected[2]).not.toEqual(expected[1]);
    // More conversations than slots, of every version, beside an update of the live policy.
    const [received] = await Promise.all([
      Promise.all(versions.map(({ engine }) => Promise.all(seeds.map((seed) => converse(engine, seed))))),
      update(model, 7),
    ]);
    expect(received.map((each) => each.map(bits))).toEqual(expected);
    // The live policy goes on too, and has moved.
    const live = (await Promise.all(seeds.map((seed) => converse(model, seed)))).map(bits);
    for (const each of expected) expect(live).not.toEqual(each);
    for (const version of versions) await version.dispose();
    expect((await Promise.all(seeds.map((seed) => converse(model, seed)))).map(bits)).toEqual(live);
  });

  it("share prefixes among their own sequences alone, and keep them through an update", async () => {
    const model = await load();
    await update(model, 1);
    const kept = await model.keepVersion!();
    await update(model, 2);
    const fresh = await converse(model, 5, 1);
    expect(fresh.reused).toEqual([0]);
    const first = await converse(kept.engine, 5, 1);
    expect(first.reused).toEqual([0]);
    expect(bits(first)).not.toEqual(bits(fresh));
    await update(model, 3);
    const second = await converse(kept.engine, 5, 1);
    expect(second.reused[0]).toBeGreaterThan(0);
    expect(bits(second)).toEqual(bits(first));
    expect((await converse(model, 5, 1)).reused).toEqual([0]);
    await kept.dispose();
  });

  it("give slots to each other, and lose nothing", async () => {
    const model = await load(2);
    const alone = new Map<string, unknown>();
    const versions: PolicyVersion[] = [];
    for (let step = 0; step < 2; step++) {
      await update(model, step);
      versions.push(await model.keepVersion!());
      for (const seed of [1, 2, 3]) alone.set(`${step} ${seed}`, bits(await converse(model, seed)));
    }
    const places = [...alone.keys()];
    const received = await Promise.all(
      places.map((place) => {
        const [step, seed] = place.split(" ").map(Number);
        return converse(versions[step!]!.engine, seed!);
      }),
    );
    places.forEach((place, i) => {
      expect(bits(received[i]!)).toEqual(alone.get(place));
    });
  });
});

/** Sequences side by side, one for each engine, that all go on for so many tokens, but for one that only keeps its slot. */
async function decodeTogether(engines: readonly PolicyEngine[], tokens: number, idle?: number) {
  const sequences = engines.map((engine) => engine.createSequence());
  for (const [i, sequence] of sequences.entries()) await sequence.prefill(randomTokens(5, i));
  const results = await Promise.all(
    sequences.map((sequence, i) =>
      i === idle ? undefined : sequence.generate([i], { maxTokens: tokens, temperature: 0.9, stopTokens: [], seed: i }),
    ),
  );
  for (const sequence of sequences) sequence.dispose();
  return results.map((result) => result && [[...result.tokenIds], [...result.logprobs]]);
}

describe.each(textArchitectures)("a batch of %s", (architecture) => {
  async function loadWithVersions(deterministic: boolean) {
    // Threads share the factors' products; beside other tests two spin for each other.
    const threads = architecture === "llama" ? 2 : 1;
    const options = { ...lora, contextSize: 256, maxSequences: 6, deterministic, threads };
    const model = await models.load({ architecture }, options);
    const versions: PolicyVersion[] = [];
    for (let step = 0; step < 3; step++) {
      await update(model, step);
      versions.push(await model.keepVersion());
    }
    await update(model, 3);
    return { model, engines: [...versions.map(({ engine }) => engine), model] };
  }

  // Every linear layer of the architecture has factors here.
  it.each([true, false])("holds rows of several versions, deterministic: %s", async (deterministic) => {
    const { model, engines } = await loadWithVersions(deterministic);
    const tokens = 40;
    const before = model.schedulerStats().decodeCalls;
    const together = await decodeTogether(engines, tokens);
    // One version after the other would take four calls for each token.
    expect(model.schedulerStats().decodeCalls - before).toBeLessThan(2 * tokens);
    if (!deterministic) return;
    for (const [i, engine] of engines.entries()) {
      const ofOneVersion = await decodeTogether(
        engines.map(() => engine),
        tokens,
      );
      expect(ofOneVersion[i]).toEqual(together[i]);
    }
  });

  // If a sequence cannot move to another slot, the others are several physical batches.
  it("of several versions may have a hole", async () => {
    const { engines } = await loadWithVersions(true);
    const [all, three] = [await decodeTogether(engines, 20), await decodeTogether(engines, 20, 1)];
    expect(three).toEqual(all.map((result, i) => (i === 1 ? undefined : result)));
  });
});

// A graph that is used again must read the weights of the version that is evaluated, in each architecture.
it.each(textArchitectures)(
  "all weights of %s: versions in turn sample as the policy did when they were kept",
  async (architecture) => {
    const model = await models.load({ architecture }, { ...full, contextSize: 128 });
    const versions: PolicyVersion[] = [];
    const expected: unknown[] = [];
    for (let step = 0; step < 3; step++) {
      if (step > 0) await update(model, step);
      versions.push(await model.keepVersion());
      expected.push(bits(await converse(model, 1)));
    }
    expect(expected[1]).not.toEqual(expected[0]);
    expect(expected[2]).not.toEqual(expected[1]);
    for (let round = 0; round < 2; round++)
      expect(await Promise.all(versions.map(async ({ engine }) => bits(await converse(engine, 1))))).toEqual(expected);
    expect(bits(await converse(model, 1))).toEqual(expected[2]);
    for (const version of versions) await version.dispose();
  },
);

it("all weights: a version is saved as the model was, while the live one moves", async () => {
  const model = await models.load({ type: "f32" }, full);
  await update(model, 1);
  const kept = await model.keepVersion();
  const folder = await mkdtemp(join(tmpdir(), "cria-versions-"));
  try {
    const [live, version] = [join(folder, "live.gguf"), join(folder, "version.gguf")];
    await model.saveModel(live);
    await update(model, 2);
    await kept.save(version);
    expect(await readFile(version)).toEqual(await readFile(live));
    const other = await models.load({ type: "f32", layers: 1 }, full);
    await expect(other.keepVersion({ path: version })).rejects.toMatchObject({ code: "engine/model-mismatch" });
    await writeFile(version, (await readFile(version)).subarray(0, -64));
    await expect(model.keepVersion({ path: version })).rejects.toMatchObject({ code: "engine/truncated" });
  } finally {
    await rm(folder, { recursive: true });
  }
});

describe.each([
  ["adapters", lora],
  ["all weights", full],
])("kept versions of %s", (_, trained) => {
  const load = () => models.load({ type: "f32" }, { ...trained, contextSize: 256 });

  it("fork, and are read back from their file", async () => {
    const model = await load();
    await update(model, 1);
    const kept = await model.keepVersion!();
    const expected = bits(await converse(kept.engine, 3));
    await update(model, 2);
    const folder = await mkdtemp(join(tmpdir(), "cria-versions-"));
    try {
      const path = join(folder, "version.gguf");
      await kept.save(path);
      const read = await model.keepVersion!({ path });
      expect(bits(await converse(read.engine, 3))).toEqual(expected);
      await read.dispose();
    } finally {
      await rm(folder, { recursive: true });
    }
    const parent = kept.engine.createSequence();
    await parent.prefill(randomTokens(6, 300));
    const fork = parent.fork();
    const { tokenIds } = await fork.generate([], { maxTokens: 10, temperature: 0.9, stopTokens: [], seed: 3 });
    expect([...tokenIds]).toEqual((expected[0] as [number[]])[0]);
    for (const sequence of [parent, fork]) sequence.dispose();
    await kept.dispose();
  });

  it("give their values, and take others, while the live policy keeps its own", async () => {
    const model = await load();
    const names = model.listTensors().filter(({ trainable }) => trainable);
    const read = (engine: LlamaModel) => Promise.all(names.map(({ name }) => engine.readTensor(name)));
    await update(model, 1);
    const first = await model.keepVersion();
    const [values, expected] = [await read(model), bits(await converse(model, 3))];
    await update(model, 2);
    expect(await read(first.engine)).toEqual(values);
    const live = await read(model);
    expect(live).not.toEqual(values);
    const second = await model.keepVersion();
    // Its KV must not be reused after its values change.
    expect(bits(await converse(second.engine, 3))).not.toEqual(expected);
    for (const [i, { name }] of names.entries()) await second.engine.writeTensor(name, values[i]!);
    expect(bits(await converse(second.engine, 3))).toEqual(expected);
    expect(await read(model)).toEqual(live);
    const { name } = names[0]!;
    const sequence = second.engine.createSequence();
    await expect(second.engine.writeTensor(name, values[0]!)).rejects.toMatchObject({ code: "engine/version-in-use" });
    sequence.dispose();
    await expect(second.engine.writeTensor(name, new Float32Array(1))).rejects.toMatchObject({
      code: "engine/bad-tensor",
    });
    await expect(second.engine.readTensor("nothing")).rejects.toMatchObject({ code: "engine/unknown-tensor" });
    for (const version of [first, second]) await version.dispose();
    await expect(first.engine.readTensor(name)).rejects.toMatchObject({ code: "engine/unknown-version" });
  });

  it("cannot be dropped while they are used, nor used afterwards", async () => {
    const model = await load();
    const kept = await model.keepVersion!();
    const sequence = kept.engine.createSequence();
    await expect(kept.dispose()).rejects.toMatchObject({ code: "engine/version-in-use" });
    await sequence.generate([1, 2, 3], { maxTokens: 2 });
    sequence.dispose();
    await kept.dispose();
    expect(() => kept.engine.createSequence()).toThrow(expect.objectContaining({ code: "engine/unknown-version" }));
    await expect(kept.dispose()).rejects.toMatchObject({ code: "engine/unknown-version" });
    await expect(kept.save("nowhere.gguf")).rejects.toMatchObject({ code: "engine/unknown-version" });
  });
});

describe("kept versions", () => {
  it("are refused for models that are not trained, and from files of other adapters", async () => {
    const generates = await models.load({ type: "f32" }, { contextSize: 64 });
    await expect(generates.keepVersion!()).rejects.toMatchObject({ code: "engine/not-trainable" });
    const folder = await mkdtemp(join(tmpdir(), "cria-versions-"));
    try {
      const path = join(folder, "other.gguf");
      const other = await models.load({ type: "f32" }, { trainable: "lora", lora: { rank: 2 }, contextSize: 64 });
      await other.saveAdapter(path);
      const model = await models.load({ type: "f32" }, { ...lora, contextSize: 64 });
      await expect(model.keepVersion!({ path })).rejects.toMatchObject({ code: "engine/adapter-mismatch" });
      await expect(model.keepVersion!({ path: join(folder, "none.gguf") })).rejects.toMatchObject({
        code: "engine/file-not-found",
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
