import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { LossFunction, ShardGradient, TrainOptions, TrainSequence } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LoadModelOptions } from "./index.js";
import { loadModel } from "./index.js";
import { loadNative } from "./load-native.js";
import {
  LONE_TOKENS,
  makeNormals,
  makeTreeBatch,
  type TinyModelOptions,
  TinyModels,
  TREE_TOKENS,
  weightedLogprobs,
} from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

function makeBatch(count: number, seed = 1): TrainSequence[] {
  const normal = makeNormals(seed);
  const token = () => Math.abs(Math.floor(normal() * 997)) % 256;
  const prefix = Array.from({ length: 10 }, token);
  return Array.from({ length: count }, (_, i) => {
    const tokenIds = [...(i % 3 ? prefix : []), ...Array.from({ length: 4 + ((i * 5) % 11) }, token)];
    return {
      tokenIds,
      lossMask: tokenIds.map((_, t) => (t > 1 && (t + i) % 3 ? 1 : 0)),
      columns: { weights: tokenIds.map(() => normal()), entropyWeights: tokenIds.map(() => 0.2 * normal()) },
    };
  });
}

async function readGradients(model: LlamaModel): Promise<Map<string, Float32Array>> {
  const gradients = new Map<string, Float32Array>();
  for (const { name } of model.listTensors().filter((t) => t.trainable)) {
    gradients.set(name, await model.readTensor(name, "gradient"));
  }
  return gradients;
}

/** Largest difference relative to the largest gradient of each tensor. */
function compare(a: Map<string, Float32Array>, b: Map<string, Float32Array>): number {
  let worst = 0;
  for (const [name, x] of a) {
    const y = b.get(name)!;
    const scale = x.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-9);
    x.forEach((v, i) => {
      worst = Math.max(worst, Math.abs(v - y[i]!) / scale);
    });
  }
  return worst;
}

describe("gradients do not depend on how the batch is computed", () => {
  it("1, 2 or 4 micro-batches", async () => {
    const model = await models.load({ tied: false }, { trainable: "full" });
    const batch = makeBatch(12);
    let total = 4096;
    let reference: Map<string, Float32Array> | undefined;
    const counts = new Set<number>();
    for (const parts of [1, 2, 4]) {
      const { microBatches, evaluatedTokens } = await model.train(batch, weightedLogprobs, null, {
        microBatchTokens: Math.ceil(total / parts),
      });
      if (parts === 1) total = evaluatedTokens;
      counts.add(microBatches);
      const gradients = await readGradients(model);
      await model.zeroGradients();
      reference ??= gradients;
      expect(compare(reference, gradients)).toBeLessThan(1e-5);
    }
    expect(counts.size).toBe(3);
  });

  const kinds: [string, TinyModelOptions, Omit<LoadModelOptions, "path">][] = [
    ["full, tied", { tied: true }, { trainable: "full" }],
    ["full, untied", { tied: false }, { trainable: "full" }],
    ["LoRA", {}, { lora: { rank: 4, alpha: 8 } }],
    ["lfm2, full", { architecture: "lfm2", layers: 3 }, { trainable: "full" }],
    ["qwen35, full", { architecture: "qwen35", layers: 3 }, { trainable: "full" }],
    ["granitehybrid, full", { architecture: "granitehybrid", layers: 3 }, { trainable: "full" }],
    ["phi3, LoRA", { architecture: "phi3" }, { lora: { rank: 4, alpha: 8 } }],
    ["qwen3moe, full", { architecture: "qwen3moe" }, { trainable: "full" }],
    ["gpt-oss, full", { architecture: "gpt-oss" }, { trainable: "full" }],
    [
      "qwen3moe, LoRA of experts",
      { architecture: "qwen3moe" },
      { lora: { rank: 4, alpha: 8, targets: ["attn_v", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] } },
    ],
  ];
  it.each(kinds)("%s: micro-batches computed apart add up to the same bits", async (_, shape, options) => {
    const model = await models.load(shape, options);
    // Rows of equal length, in the order of their first tokens: one micro-batch each.
    const length = 161;
    const batch = makeBatch(5).map((_, i): TrainSequence => {
      const normal = makeNormals(10 + i);
      const tokenIds = Array.from({ length }, (_, t) => (t === 0 ? i : Math.abs(Math.floor(normal() * 997)) % 256));
      return {
        tokenIds,
        lossMask: tokenIds.map((_, t) => (t > 0 ? 1 : 0)),
        columns: { weights: tokenIds.map(() => normal()), entropyWeights: tokenIds.map(() => 0.2 * normal()) },
      };
    });
    const sums = new Map<string, Float32Array>();
    for (const sequence of batch) {
      await model.train([sequence], weightedLogprobs, null);
      for (const [name, gradient] of await readGradients(model)) {
        const sum = sums.get(name);
        if (sum)
          gradient.forEach((value, i) => {
            sum[i] = sum[i]! + value;
          });
        else sums.set(name, gradient);
      }
      await model.zeroGradients();
    }
    const { microBatches } = await model.train(batch, weightedLogprobs, null, { microBatchTokens: length });
    expect(microBatches).toBe(batch.length);
    for (const [name, gradient] of await readGradients(model)) expect(gradient, name).toEqual(sums.get(name));
    // The same holds for gradients that were written from outside: the next micro-batch is added to them.
    const [last] = batch.slice(-1);
    await model.zeroGradients();
    await model.train(batch.slice(0, -1), weightedLogprobs, null, { microBatchTokens: length });
    const before = await readGradients(model);
    await model.zeroGradients();
    for (const [name, gradient] of before) await model.writeTensor(name, gradient, "gradient");
    await model.train([last!], weightedLogprobs, null);
    for (const [name, gradient] of await readGradients(model)) expect(gradient, name).toEqual(sums.get(name));
    await model.zeroGradients();
  });

  it.each(kinds)(
    "%s: other engines of the same weights give the same step, in whatever order",
    async (_, shape, options) => {
      const batch = makeBatch(12);
      const step = { learningRate: 1e-2, maxGradNorm: 1 };
      const train = async (compute?: TrainOptions["compute"]) => {
        const model = await models.load(shape, options);
        // Gradients accumulated before stay part of the step.
        await model.train(batch.slice(0, 2), weightedLogprobs, null);
        const result = await model.train(batch, weightedLogprobs, step, { microBatchTokens: 40, compute });
        const weights = new Map<string, Float32Array>();
        for (const { name } of model.listTensors().filter((t) => t.trainable)) {
          weights.set(name, await model.readTensor(name));
        }
        return { result, weights };
      };
      const alone = await train();
      expect(alone.result.microBatches).toBeGreaterThan(4);
      const others = [await models.load(shape, options), await models.load(shape, options)];
      let last: Promise<unknown> = Promise.resolve();
      let asked = 0;
      const together = await train((shard, here) => {
        // The first request is finished last.
        const [turn, before] = [asked++, last];
        const work = () =>
          turn % 3 === 2 ? here() : others[turn % 3]!.computeGradient(structuredClone(shard), weightedLogprobs);
        const found =
          turn === 0 ? new Promise((resolve) => setImmediate(resolve)).then(() => last).then(work) : before.then(work);
        if (turn > 0) last = found;
        return found;
      });
      expect(asked).toBe(alone.result.microBatches);
      expect(together).toEqual(alone);
    },
  );

  it("a gradient of another model, and a failure elsewhere, leave the weights as they were", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 } });
    const batch = makeBatch(6);
    const train = (compute: TrainOptions["compute"]) =>
      model.train(batch, weightedLogprobs, { learningRate: 1 }, { microBatchTokens: 40, compute });
    const [before] = await model.score([{ tokenIds: [1, 2, 3] }]);
    await expect(train(async () => ({ gradient: new Float32Array(3), loss: 0, metrics: {} }))).rejects.toMatchObject({
      code: "engine/bad-gradient",
      subject: "gradient of a micro-batch",
    });
    let asked = 0;
    const lost = new Error("lost");
    const lose = (here: () => Promise<ShardGradient>) => (asked++ === 1 ? Promise.reject(lost) : here());
    await expect(train((_, here) => lose(here))).rejects.toBe(lost);
    expect((await model.score([{ tokenIds: [1, 2, 3] }]))[0]).toEqual(before);
    for (const gradient of (await readGradients(model)).values()) expect(gradient.every((x) => x === 0)).toBe(true);
  });

  // The tolerances: if products round activations, a last bit can change a rounding.
  const trees: [string, number, TinyModelOptions, Omit<LoadModelOptions, "path">][] = [
    ["F32, full", 1e-5, { embeddingScale: 0.3 }, { trainable: "full" }],
    ["F32, LoRA", 1e-5, {}, { lora: { rank: 4, alpha: 8 } }],
    [
      "lfm2 with a convolution last, full",
      1e-5,
      { architecture: "lfm2", layers: 3, embeddingScale: 0.3 },
      { trainable: "full" },
    ],
    [
      "lfm2 with attention last, LoRA",
      1e-5,
      { architecture: "lfm2", embeddingScale: 0.3 },
      { lora: { rank: 4, alpha: 8 } },
    ],
    [
      "qwen35 with a delta net last, full",
      1e-5,
      { architecture: "qwen35", layers: 3, embeddingScale: 0.3 },
      { trainable: "full" },
    ],
    [
      "qwen35 with attention last, LoRA",
      1e-5,
      { architecture: "qwen35", embeddingScale: 0.3 },
      { lora: { rank: 4, alpha: 8 } },
    ],
    [
      "granitehybrid with Mamba last, full",
      1e-5,
      { architecture: "granitehybrid", layers: 3, embeddingScale: 0.3 },
      { trainable: "full" },
    ],
    [
      "granitehybrid with attention last, LoRA",
      1e-5,
      { architecture: "granitehybrid", embeddingScale: 0.3 },
      { lora: { rank: 4, alpha: 8 } },
    ],
    ["mistral3, full", 1e-5, { architecture: "mistral3", embeddingScale: 0.3 }, { trainable: "full" }],
    ["phi3, full", 1e-5, { architecture: "phi3", embeddingScale: 0.3 }, { trainable: "full" }],
    ["qwen3moe, full", 1e-5, { architecture: "qwen3moe", embeddingScale: 0.3 }, { trainable: "full" }],
    ["gpt-oss, full", 1e-5, { architecture: "gpt-oss", embeddingScale: 0.3 }, { trainable: "full" }],
    [
      "gpt-oss, LoRA",
      1e-5,
      { architecture: "gpt-oss", layers: 3, embeddingScale: 0.3 },
      { lora: { rank: 4, alpha: 8 } },
    ],
    [
      "qwen3moe, LoRA",
      1e-5,
      { architecture: "qwen3moe", layers: 3, embeddingScale: 0.3 },
      { lora: { rank: 4, alpha: 8 } },
    ],
    ["Q8_0, LoRA", 5e-3, { type: "q8_0", embedding: 64, feedForward: 96 }, { lora: { rank: 4, alpha: 8 } }],
  ];
  it.each(trees)(
    "packed with shared tokens at any depth, or each sequence alone: %s",
    async (_, most, tiny, options) => {
      const model = await models.load(tiny, options);
      const batch = makeTreeBatch();
      const seen: number[][] = [];
      const loss: LossFunction = (inputs) => {
        inputs.sequenceIndices.forEach((sequence, i) => {
          const [from, to] = [inputs.offsets[i]!, inputs.offsets[i + 1]!];
          seen[sequence] = [...inputs.logprobs.subarray(from, to), ...inputs.entropy.subarray(from, to)];
        });
        return weightedLogprobs(inputs);
      };
      const packed = await model.train(batch, loss, null);
      const gradients = await readGradients(model);
      await model.zeroGradients();
      const scores = seen.splice(0);
      const pad = (length: number) => Math.ceil(length / 8) * 8;
      expect(packed.evaluatedTokens).toBe(pad(TREE_TOKENS) + pad(LONE_TOKENS));
      let sum = 0;
      for (const [i, sequence] of batch.entries()) {
        sum += (await model.train([sequence], loss, null)).loss;
        expect(scores[i]!.length).toBe(2 * Array.from(sequence.lossMask).filter(Boolean).length);
        expect(Math.max(...scores[i]!.map((x, k) => Math.abs(x - seen[0]![k]!)))).toBeLessThan(most);
      }
      expect(packed.loss).toBeCloseTo(sum, 3);
      expect(compare(await readGradients(model), gradients)).toBeLessThan(most);
    },
  );

  it("accumulated over calls", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 } });
    const batch = makeBatch(8);
    await model.train(batch, weightedLogprobs, null);
    const together = await readGradients(model);
    await model.zeroGradients();
    await model.train(batch.slice(0, 3), weightedLogprobs, null);
    await model.train(batch.slice(3), weightedLogprobs, null);
    expect(compare(together, await readGradients(model))).toBeLessThan(1e-5);
  });

  it("layers kept, or recomputed under a small memory budget", async () => {
    const path = await models.write({ layers: 4 });
    const kept = await models.load({}, { path, trainable: "full" });
    const recomputed = await models.load({}, { path, trainable: "full", trainingMemory: 0 });
    const partly = await models.load({}, { path, trainable: "full", trainingMemory: 500_000 });
    // Four rows of 16 tokens: about 200 kB of activations per layer.
    const normal = makeNormals(9);
    const batch = Array.from({ length: 4 }, (_, i): TrainSequence => {
      const tokenIds = Array.from({ length: 16 }, (_, t) => (i * 50 + t * 7) % 256);
      return {
        tokenIds,
        lossMask: tokenIds.map((_, t) => (t ? 1 : 0)),
        columns: { weights: tokenIds.map(() => normal()) },
      };
    });
    const all = [];
    for (const model of [kept, recomputed, partly]) {
      await model.train(batch, weightedLogprobs, null);
      all.push({ layers: model.keptLayers, gradients: await readGradients(model) });
    }
    expect(all[0]!.layers).toBe(4);
    expect(all[1]!.layers).toBe(0);
    expect([1, 2, 3]).toContain(all[2]!.layers);
    expect(compare(all[0]!.gradients, all[1]!.gradients)).toBe(0);
    expect(compare(all[0]!.gradients, all[2]!.gradients)).toBe(0);
  });

  for (const type of ["f16", "bf16", "q8_0", "q4_0", "q4_K"] as const) {
    it(`${type} base: LoRA gradients are near those over the same weights in F32`, async () => {
      const shape = { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.3 };
      const low = await models.load({ type, ...shape }, { lora: { rank: 4, alpha: 8 } });
      // The F32 twin holds exactly the values that the low-precision weights represent.
      const twin = await models.load({ type: "f32", ...shape }, { trainable: "full" });
      for (const { name, shape: s } of twin.listTensors())
        if (s.length === 2) await twin.writeTensor(name, await low.readTensor(name));
      const exactPath = join(models.folder, `twin-${type}.gguf`);
      await twin.saveModel(exactPath);
      const exact = await models.load({}, { path: exactPath, lora: { rank: 4, alpha: 8 } });
      const normal = makeNormals(3);
      for (const { name, shape: s } of low.listTensors().filter((t) => t.name.endsWith(".lora_b"))) {
        const values = Float32Array.from({ length: s[0]! * s[1]! }, () => 0.02 * normal());
        await low.writeTensor(name, values);
        await exact.writeTensor(name, values);
      }
      await low.train(makeTreeBatch(), weightedLogprobs, null);
      await exact.train(makeTreeBatch(), weightedLogprobs, null);
      const [a, b] = [await readGradients(exact), await readGradients(low)];
      let dot = 0;
      let na = 0;
      let nb = 0;
      for (const [name, x] of a) {
        x.forEach((v, i) => {
          const w = b.get(name)![i]!;
          dot += v * w;
          na += v * v;
          nb += w * w;
        });
      }
      // The forward pass rounds activations as decoding does; the gradient is that of the exact linear map.
      expect(dot / Math.sqrt(na * nb)).toBeGreaterThan(type === "q4_K" ? 0.98 : 0.995);
    });
  }
});

describe("updates", () => {
  it("reach generation at once: the adapter is the same memory", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 } });
    const prompt = [5, 6, 7, 8];
    const target = [9, 10, 11];
    const tokenIds = [...prompt, ...target];
    const batch = [
      {
        tokenIds,
        lossMask: tokenIds.map((_, t) => (t >= prompt.length ? 1 : 0)),
        columns: { weights: tokenIds.map(() => -1) },
      },
    ];
    const greedy = async () => [
      ...(await model.createSequence().generate(prompt, { maxTokens: 3, temperature: 0, stopTokens: [] })).tokenIds,
    ];
    expect(await greedy()).not.toEqual(target);
    const [before] = await model.score([{ tokenIds, from: prompt.length }], { adapter: false });
    for (let step = 0; step < 60; step++) await model.train(batch, weightedLogprobs, { learningRate: 0.02 });
    expect(await greedy()).toEqual(target);
    const [reference] = await model.score([{ tokenIds, from: prompt.length }], { adapter: false });
    expect([...reference!.logprobs]).toEqual([...before!.logprobs]);
  });

  it("a gradient that is not finite changes nothing and says so", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 } });
    const before = await model.readTensor("blk.0.attn_q.weight.lora_a");
    await expect(
      model.train(
        makeBatch(3),
        ({ logprobs }) => ({ loss: Number.NaN, dLogprobs: new Float32Array(logprobs.length).fill(Number.NaN) }),
        { learningRate: 1 },
      ),
    ).rejects.toMatchObject({ code: "engine/bad-gradient", subject: "gradient" });
    expect([...(await model.readTensor("blk.0.attn_q.weight.lora_a"))]).toEqual([...before]);
    const { gradNorm } = await model.train(makeBatch(3), weightedLogprobs, { learningRate: 1e-3 });
    expect(gradNorm).toBeGreaterThan(0);
  });

  it("saved adapters and models come back as they were", async () => {
    const path = await models.write();
    const model = await models.load({}, { path, lora: { rank: 4, alpha: 8 } });
    for (let step = 0; step < 3; step++) await model.train(makeBatch(4), weightedLogprobs, { learningRate: 0.01 });
    const adapter = join(models.folder, "adapter.gguf");
    await model.saveAdapter(adapter);
    const again = await models.load({}, { path, lora: { path: adapter } });
    const tokenIds = [1, 2, 3, 4, 5, 6];
    const [a] = await model.score([{ tokenIds }]);
    const [b] = await again.score([{ tokenIds }]);
    expect([...b!.logprobs]).toEqual([...a!.logprobs]);

    const full = await models.load({}, { path, trainable: "full" });
    await full.train(makeBatch(4), weightedLogprobs, { learningRate: 0.01 });
    const saved = join(models.folder, "saved.gguf");
    await full.saveModel(saved);
    const reloaded = await models.load({}, { path: saved, trainable: "full" });
    expect([...(await reloaded.score([{ tokenIds }]))[0]!.logprobs]).toEqual([
      ...(await full.score([{ tokenIds }]))[0]!.logprobs,
    ]);
    expect(reloaded.chatTemplate).toBe(full.chatTemplate);
  });

  it("a failed save leaves nothing behind", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 } });
    const path = "/proc/nowhere/adapter.gguf";
    await expect(model.saveAdapter(path)).rejects.toMatchObject({ code: "engine/write-failed", subject: path });
    expect(readdirSync(models.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});

describe("bad input", () => {
  it("each is refused by name, and the model stays usable", async () => {
    const model = await models.load({}, { lora: { rank: 4, alpha: 8 } });
    const good = { tokenIds: [1, 2, 3], lossMask: [0, 1, 1], columns: { weights: [0, 1, 1] } };
    const train = (sequence: Partial<TrainSequence>) =>
      model.train([{ ...good, ...sequence }], weightedLogprobs, { learningRate: 1e-3 });
    const badBatch = (subject: string, more: object = {}) => ({ code: "engine/bad-batch", subject, ...more });
    await expect(train({ tokenIds: [1, 2, 1e9] })).rejects.toMatchObject({
      code: "engine/bad-token",
      subject: "train: sequence 0, token 2",
    });
    const mask = "train: sequence 0, lossMask";
    await expect(train({ lossMask: [0, 1] })).rejects.toMatchObject(badBatch(mask, { received: "2" }));
    await expect(train({ lossMask: [1, 1, 1] })).rejects.toMatchObject(badBatch(mask, { expected: "0 at index 0" }));
    await expect(train({ columns: { weights: [1] } })).rejects.toMatchObject(
      badBatch("train: sequence 0, column weights", { received: "1" }),
    );
    const shortLoss = () => ({ loss: 0, dLogprobs: new Float32Array(1) });
    await expect(model.train([good], shortLoss, null)).rejects.toMatchObject(badBatch("loss: dLogprobs"));
    await expect(model.score([{ tokenIds: [1] }])).rejects.toMatchObject(
      badBatch("score: sequence 0", { expected: "at least 2 tokens" }),
    );
    await expect(model.score([good], { temperature: 0 })).rejects.toMatchObject({
      code: "engine/bad-option",
      subject: "temperature",
    });
    await expect(model.readTensor("nothing")).rejects.toMatchObject({
      code: "engine/unknown-tensor",
      subject: "nothing",
    });
    expect((await train({})).gradNorm).toBeGreaterThan(0);
  });

  it("refuses a micro-batch whose rows are not trees", async () => {
    const native = await loadNative({ path: await models.write(), lora: { rank: 4 }, threads: 1 }, {});
    const train = (ends: number[]) =>
      native.forward(
        {
          ...{ rows: 1, rowLength: 8, temperature: 1, adapter: true, ends: Int32Array.from(ends) },
          ...{ tokens: new Int32Array(8), positions: new Int32Array(8) },
          ...{ sources: Int32Array.of(0), targets: Int32Array.of(1) },
        },
        true,
      );
    const wrong = [
      // Ends before itself.
      [8, 8, 2, 8, 8, 8, 8, 8],
      [-1, -1, 0, 0, 0, 0, 0, 0],
      // Ends behind its parent.
      [3, 3, 3, 8, 8, 8, 8, 9],
      [4, 8, 4, 4, 8, 8, 8, 8],
      [6, 6, 6, 6, 6, 0, 0, 0],
      // Behind padding.
      [2, 2, 0, 4, 0, 0, 0, 0],
      // The source is padding.
      [0, 0, 0, 0, 0, 0, 0, 0],
      // Fewer than the tokens.
      [8, 8, 8],
    ];
    for (const ends of wrong)
      await expect(train(ends), `${ends}`).rejects.toMatchObject({ code: "bad-batch", subject: "micro-batch" });
    for (const ends of [
      [8, 8, 8, 8, 8, 8, 8, 8],
      [3, 2, 3, 6, 5, 6, 0, 0],
    ])
      expect((await train(ends)).logprobs[0]).toBeLessThan(0);
    await native.dispose();
  });

  it("refuses wrong files and options", async () => {
    const missing = { code: "engine/file-not-found" };
    await expect(loadModel({ path: "no/such/model.gguf" })).rejects.toMatchObject({
      ...missing,
      remedy: expect.stringContaining(process.cwd()),
    });
    await expect(loadModel({ path: "/no/such/model.gguf" })).rejects.toMatchObject({
      ...missing,
      remedy: "check the path",
    });
    await expect(loadModel({ path: import.meta.filename })).rejects.toMatchObject({ code: "engine/not-gguf" });
    const path = await models.write();
    const { readFileSync, writeFileSync } = await import("node:fs");
    const bytes = readFileSync(path);
    for (const length of [3, 20, 200, 9000, bytes.length - 1000]) {
      const cut = join(models.folder, "cut.gguf");
      writeFileSync(cut, bytes.subarray(0, length));
      const code = length < 4 ? "engine/not-gguf" : "engine/truncated";
      await expect(loadModel({ path: cut }), `${length}`).rejects.toMatchObject({ code, subject: cut });
    }
    const load = (options: object) => loadModel({ path, contextSize: 64, ...options } as never);
    const bad = (subject: string) => ({ code: "engine/bad-option", subject });
    await expect(load({ maxSequences: 0 })).rejects.toMatchObject(bad("loadModel.maxSequences"));
    await expect(load({ contextSize: "big" })).rejects.toMatchObject(bad("loadModel.contextSize"));
    await expect(load({ kvType: "q9" })).rejects.toMatchObject(bad("loadModel.kvType"));
    await expect(load({ lora: { rank: 0 } })).rejects.toMatchObject(bad("loadModel.lora.rank"));
    await expect(load({ lora: { targets: ["attn_z"] } })).rejects.toMatchObject({
      ...bad("loadModel.lora.targets"),
      received: '"attn_z"',
    });
    await expect(load({ lora: { path } })).rejects.toMatchObject({ code: "engine/not-an-adapter", subject: path });
    await expect(load({ trainable: "lora" })).rejects.toMatchObject(bad("loadModel.lora"));
    await expect(load({ device: "cuda" })).rejects.toMatchObject({ code: "engine/no-cuda", subject: 'device "cuda"' });
    await expect(load({ contxtSize: 4 })).rejects.toMatchObject({
      code: "config/unknown-option",
      subject: "loadModel.contxtSize",
    });
    const quantized = await models.write({ type: "q8_0", embedding: 64, feedForward: 64 });
    await expect(loadModel({ path: quantized, trainable: "full" })).rejects.toMatchObject({
      code: "engine/unsupported-type",
      subject: quantized,
    });
  });

  it("queries, keys and values in one matrix have the gradients of three", async () => {
    const { writeGguf } = await import("./index.js");
    const { describeTinyModel } = await import("./testing/index.js");
    const apart = await models.write({ architecture: "qwen2" });
    const file = describeTinyModel({ architecture: "qwen2" });
    const parts = ["attn_q", "attn_k", "attn_v"];
    const concat = (arrays: Float32Array[]) => Float32Array.from(arrays.flatMap((array) => [...array]));
    for (const layer of [0, 1]) {
      const names = parts.map((part) => `blk.${layer}.${part}.weight`);
      const three = names.map((name) => file.tensors.find((tensor) => tensor.name === name)!);
      const rows = three.reduce((sum, { shape }) => sum + shape[1]!, 0);
      const data = concat(three.map((tensor) => tensor.data as Float32Array));
      file.tensors = file.tensors.filter(({ name }) => !names.includes(name));
      file.tensors.push({ name: `blk.${layer}.attn_qkv.weight`, type: "f32", shape: [64, rows], data });
    }
    const fused = join(models.folder, "fused-qwen2.gguf");
    await writeGguf(fused, file);
    const gradients = async (path: string) => {
      const model = await models.load({}, { path, trainable: "full" });
      await model.train(makeTreeBatch(), weightedLogprobs, null);
      return readGradients(model);
    };
    const [expected, received] = [await gradients(apart), await gradients(fused)];
    for (const layer of [0, 1]) {
      const three = parts.map((part) => expected.get(`blk.${layer}.${part}.weight`)!);
      expect(received.get(`blk.${layer}.attn_qkv.weight`)).toEqual(concat(three));
      for (const part of ["attn_q.bias", "ffn_down.weight"])
        expect(received.get(`blk.${layer}.${part}`)).toEqual(expected.get(`blk.${layer}.${part}`));
    }
  });

  it("a weight that training does not model is named", async () => {
    const { writeGguf } = await import("./index.js");
    const { describeTinyModel } = await import("./testing/index.js");
    const file = describeTinyModel({ architecture: "phi3" });
    for (const layer of [0, 1])
      file.tensors.push({ name: `blk.${layer}.attn_qkv.bias`, type: "f32", shape: [128], data: new Float32Array(128) });
    const path = join(models.folder, "biased-phi3.gguf");
    await writeGguf(path, file);
    const generating = await loadModel({ path, contextSize: 64 });
    await generating.dispose();
    await expect(loadModel({ path, contextSize: 64, lora: { rank: 4 } })).rejects.toMatchObject({
      code: "engine/unsupported-tensor",
      received: '"blk.0.attn_qkv.bias"',
    });
  });

  it("refuses an untrainable architecture, and lists the trainable ones", async () => {
    const { writeGguf } = await import("./index.js");
    const { describeTinyModel } = await import("./testing/index.js");
    const file = describeTinyModel();
    file.metadata["general.architecture"] = { type: "string", value: "gemma2" };
    const path = join(models.folder, "gemma.gguf");
    await writeGguf(path, file);
    await expect(loadModel({ path, lora: { rank: 4 } })).rejects.toMatchObject({
      code: "engine/unsupported-architecture",
      expected: expect.stringContaining("llama, qwen2, qwen3, qwen2vl, qwen3vl"),
      received: '"gemma2"',
    });
  });
});
