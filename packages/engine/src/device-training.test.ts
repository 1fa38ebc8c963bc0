import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TrainSequence } from "@cria/core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { buildEmulation } from "../../../native/kernels/tests/build-emulation.mjs";
import { buildMetalOperations, cutFunction, readMetalSource } from "../../../native/test/metal-operations.mjs";
import type { LlamaModel, LoadModelOptions } from "./index.js";
import { loadModel } from "./index.js";
import {
  checkGradients,
  LONE_TOKENS,
  loadEmulated,
  makeCandidateBatch,
  makeNormals,
  makeTinyModel,
  makeTreeBatch,
  type TinyModelOptions,
  TREE_TOKENS,
  weightedCandidates,
  weightedLogprobs,
} from "./testing/index.js";

// Training as on a GPU, checked on the CPU: with ggml's operations only, and with our CUDA kernels in an emulation.
let folder: string;
let kernels: string;
let rounding: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cria-device-"));
  ({ library: kernels, rounding } = await buildEmulation());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Options = Omit<LoadModelOptions, "path">;
let files = 0;
async function write(tiny: TinyModelOptions): Promise<string> {
  const path = join(folder, `${files++}.gguf`);
  await makeTinyModel(path, tiny);
  return path;
}
const small = { contextSize: 64, maxSequences: 2, threads: 1 };

async function readGradients(
  model: LlamaModel,
  batch = makeTreeBatch(),
  loss = weightedLogprobs,
): Promise<Map<string, Float32Array>> {
  await model.train(batch, loss, null, { temperature: 0.8 });
  const gradients = new Map<string, Float32Array>();
  for (const { name, trainable } of model.listTensors())
    if (trainable) gradients.set(name, await model.readTensor(name, "gradient"));
  await model.zeroGradients();
  return gradients;
}

function findDifferences(ours: Map<string, Float32Array>, theirs: Map<string, Float32Array>): Record<string, number> {
  return Object.fromEntries(
    [...theirs].map(([name, wanted]) => {
      const given = ours.get(name)!;
      const difference = Math.hypot(...wanted.map((x, i) => x - given[i]!));
      return [name, difference / (Math.hypot(...wanted) || 1)];
    }),
  );
}

const variants = [
  { name: "ggml's operations", device: () => ({}) },
  { name: "our kernels, emulated", device: () => ({ kernels }) },
];

/** Every dense architecture, and types of weights. */
const cases: [string, TinyModelOptions, Options][] = [
  ["llama, full", { architecture: "llama" }, { trainable: "full" }],
  ["llama with factors of RoPE, full", { architecture: "llama", ropeFactors: true }, { trainable: "full" }],
  ["qwen2, full", { architecture: "qwen2" }, { trainable: "full" }],
  ["gemma3, full", { architecture: "gemma3" }, { trainable: "full" }],
  ["smollm3, full", { architecture: "smollm3" }, { trainable: "full" }],
  ["granite, full", { architecture: "granite" }, { trainable: "full" }],
  ["lfm2, full", { architecture: "lfm2" }, { trainable: "full" }],
  ["mistral3, full", { architecture: "mistral3" }, { trainable: "full" }],
  ["phi3, full", { architecture: "phi3" }, { trainable: "full" }],
  [
    "phi3 Q8_0 with LoRA",
    { architecture: "phi3", type: "q8_0", feedForward: 96, embeddingScale: 0.3 },
    { lora: { rank: 4 } },
  ],
  ["lfm2 with a convolution last, LoRA", { architecture: "lfm2", layers: 3 }, { lora: { rank: 4 } }],
  ["Q8_0 with LoRA", { type: "q8_0", embedding: 64, feedForward: 96 }, { lora: { rank: 4 } }],
  ["Q4_0 with LoRA", { type: "q4_0", embedding: 64, feedForward: 96, tied: false }, { lora: { rank: 4 } }],
  [
    "Q4_K with LoRA",
    { type: "q4_K", embedding: 256, headSize: 64, feedForward: 256, layers: 1 },
    { lora: { rank: 4 } },
  ],
  ["F16 with LoRA", { type: "f16" }, { lora: { rank: 4 }, trainingMemory: 0 }],
];

describe.each(variants)("training as on a GPU: $name", ({ device }) => {
  it("full training agrees with finite differences, weight by weight", async () => {
    const path = await write({ architecture: "qwen3", layers: 1 });
    const model = await loadEmulated({ path, ...small, trainable: "full" }, device());
    const { evaluatedTokens } = await model.train(makeTreeBatch(), weightedLogprobs, null);
    expect(evaluatedTokens).toBe(Math.ceil(TREE_TOKENS / 8) * 8 + Math.ceil(LONE_TOKENS / 8) * 8);
    await model.zeroGradients();
    const checks = await checkGradients(model, makeTreeBatch(), weightedLogprobs, { temperature: 0.8 });
    expect(checks.length).toBe(model.listTensors().length);
    for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-3);
    expect(checks.filter((check) => check.relativeError > 5e-3)).toEqual([]);
    await model.dispose();
  });

  it.each(cases)("%s: the gradients of the CPU's own path", async (_, tiny, options) => {
    const path = await write(tiny);
    const ours = await loadEmulated({ path, ...small, ...options }, device());
    const cpu = await loadModel({ path, ...small, ...options, device: "cpu" });
    const differences = findDifferences(await readGradients(ours), await readGradients(cpu));
    expect(Object.keys(differences).length).toBeGreaterThan(5);
    expect(Object.entries(differences).filter(([, difference]) => !(difference < 2e-3))).toEqual([]);
    await Promise.all([ours.dispose(), cpu.dispose()]);
  });

  it("heads too large for a GPU's shared memory go by products, forward and backward", async () => {
    const path = await write({ architecture: "qwen3", layers: 1, heads: 2, headSize: 128 });
    const cpu = await loadModel({ path, ...small, trainable: "full", device: "cpu" });
    const wanted = await readGradients(cpu);
    // As on an RTX 4090 (99 KiB), and on an H100.
    for (const shared of [101_376, 232_448]) {
      vi.stubEnv("CRIA_EMULATION_SHARED", `${shared}`);
      const ours = await loadEmulated({ path, ...small, trainable: "full" }, device());
      const differences = findDifferences(await readGradients(ours), wanted);
      expect(Object.entries(differences).filter(([, difference]) => !(difference < 2e-3))).toEqual([]);
      await ours.dispose();
    }
    vi.unstubAllEnvs();
    await cpu.dispose();
  });

  it.each(["qwen35", "granitehybrid", "qwen3moe", "gpt-oss"] as const)(
    "%s's states or experts are refused before the first step",
    async (architecture) => {
      const path = await write({ architecture });
      await expect(loadEmulated({ path, ...small, trainable: "full" }, device())).rejects.toMatchObject({
        code: "engine/unsupported-architecture",
      });
    },
  );

  it.each([
    ["full", {}, { trainable: "full" }],
    ["Q8_0 with LoRA", { type: "q8_0", embedding: 64, feedForward: 96 }, { lora: { rank: 4 } }],
  ] as [string, TinyModelOptions, Options][])(
    "candidates have the gradients of the CPU's own path: %s",
    async (_, tiny, options) => {
      const path = await write({ embeddingScale: 0.3, ...tiny });
      const ours = await loadEmulated({ path, ...small, ...options }, device());
      const cpu = await loadModel({ path, ...small, ...options, device: "cpu" });
      const gradients = (model: LlamaModel) => readGradients(model, makeCandidateBatch(), weightedCandidates);
      const differences = findDifferences(await gradients(ours), await gradients(cpu));
      expect(Object.entries(differences).filter(([, difference]) => !(difference < 2e-3))).toEqual([]);
      // Without them the gradient is another one.
      const plain = Object.values(findDifferences(await readGradients(ours), await gradients(ours)));
      expect(Math.max(...plain)).toBeGreaterThan(0.1);
      await Promise.all([ours.dispose(), cpu.dispose()]);
    },
  );

  it("finds the likeliest tokens that the CPU finds, and changes no other number for it", async () => {
    const path = await write({ embeddingScale: 0.3 });
    const ours = await loadEmulated({ path, ...small, trainable: "full" }, device());
    const cpu = await loadModel({ path, ...small, trainable: "full", device: "cpu" });
    const options = { temperature: 0.8, likeliest: { count: 4 } };
    const [asked, wanted] = [await ours.score(makeTreeBatch(), options), await cpu.score(makeTreeBatch(), options)];
    asked.forEach(({ likeliest }, i) => {
      expect([...likeliest!.ids]).toEqual([...wanted[i]!.likeliest!.ids]);
      likeliest!.logprobs.forEach((logprob, k) => {
        expect(logprob).toBeCloseTo(wanted[i]!.likeliest!.logprobs[k]!, 4);
      });
    });
    const plain = await ours.score(makeTreeBatch(), { temperature: 0.8 });
    expect(asked.map(({ logprobs }) => logprobs)).toEqual(plain.map(({ logprobs }) => logprobs));
    await Promise.all([ours.dispose(), cpu.dispose()]);
  });

  it("sums squared probabilities as the CPU does, and changes no other number for it", async () => {
    const path = await write({ embeddingScale: 0.3 });
    const ours = await loadEmulated({ path, ...small, trainable: "full" }, device());
    const cpu = await loadModel({ path, ...small, trainable: "full", device: "cpu" });
    const options = { temperature: 0.8, entropy: true };
    const asked = await ours.score(makeTreeBatch(), { ...options, sumPiSquared: true });
    const wanted = await cpu.score(makeTreeBatch(), { ...options, sumPiSquared: true });
    asked.forEach(({ sumPiSquared }, i) => {
      expect(Math.max(...wanted[i]!.sumPiSquared!)).toBeGreaterThan(1 / 256);
      sumPiSquared!.forEach((sum, t) => {
        expect(sum).toBeCloseTo(wanted[i]!.sumPiSquared![t]!, 5);
      });
    });
    const plain = await ours.score(makeTreeBatch(), options);
    expect(asked.map((score) => ({ ...score, sumPiSquared: null }))).toEqual(plain);
    await Promise.all([ours.dispose(), cpu.dispose()]);
  });
});

// As in docs/devices.md: on the CPU, forward products over quantised weights round activations too.
describe("differences of devices over quantised weights", () => {
  const shape = { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.3 };
  const lora = { rank: 4, alpha: 8 };

  /** The same weights as F32. */
  async function writeTwin(path: string): Promise<string> {
    const low = await loadModel({ path, ...small, lora });
    const twin = await loadModel({ path: await write({ ...shape }), ...small, trainable: "full" });
    for (const { name, shape } of twin.listTensors())
      if (shape.length === 2) await twin.writeTensor(name, await low.readTensor(name));
    const file = join(folder, `${files++}.gguf`);
    await twin.saveModel(file);
    await Promise.all([low.dispose(), twin.dispose()]);
    return file;
  }

  /**
   * Sequences in which no last bit changes the rounding of an activation: such a change would be as large as the
   * measured difference.
   */
  function makeBatch(): TrainSequence[] {
    const normal = makeNormals(5);
    const token = () => Math.abs(Math.floor(normal() * 1000)) % 256;
    const prefix = Array.from({ length: 9 }, token);
    const sequences = [6, 11].map((n) => [...prefix, ...Array.from({ length: n }, token)]);
    sequences.push(Array.from({ length: 13 }, token), Array.from({ length: 5 }, token));
    return sequences.map((tokenIds) => ({
      tokenIds,
      lossMask: tokenIds.map((_, t) => (t > 2 && t % 4 !== 1 ? 1 : 0)),
      columns: { weights: tokenIds.map(() => normal()), entropyWeights: tokenIds.map(() => 0.3 * normal()) },
    }));
  }

  async function measure(model: LlamaModel): Promise<Map<string, Float32Array>> {
    const normal = makeNormals(3);
    for (const { name, shape } of model.listTensors().filter(({ name }) => name.endsWith(".lora_b")))
      await model.writeTensor(
        name,
        Float32Array.from({ length: shape[0]! * shape[1]! }, () => 0.02 * normal()),
      );
    const gradients = await readGradients(model, makeBatch());
    await model.dispose();
    return gradients;
  }

  const worst = (a: Map<string, Float32Array>, b: Map<string, Float32Array>) =>
    Math.max(...Object.values(findDifferences(a, b)));

  it.each(["q8_0", "q4_K"] as const)("%s: the rounding of activations, and nothing else", async (type) => {
    const path = await write({ ...shape, type });
    const cpu = await measure(await loadModel({ path, ...small, lora, device: "cpu" }));
    // ggml's products round activations as ours do, but its gradients use F32 weights.
    const rounding = await measure(await loadEmulated({ path, ...small, lora }, {}));
    const exact = await measure(await loadModel({ path: await writeTwin(path), ...small, lora, device: "cpu" }));
    expect(worst(cpu, rounding)).toBeLessThan(2e-3);
    for (const rounded of [cpu, rounding]) {
      expect(worst(rounded, exact)).toBeGreaterThan(1e-2);
      expect(worst(rounded, exact)).toBeLessThan(0.15);
    }
  });
});

/** Operations of gradients for which plainer ones are taken. */
const replaced = ["SOFT_MAX_BACK", "RMS_NORM_BACK", "GET_ROWS_BACK", "REPEAT_BACK", "SILU_BACK"];

// Metal's own source says what it has: a Mac's first training must not find that an operation is missing.
const lacking = [
  { name: "operations of gradients", device: () => ({ refused: replaced }) },
  { name: "what Metal lacks", device: () => ({ operations: buildMetalOperations() }) },
];

describe.each(lacking)("a device that lacks $name", ({ device }) => {
  const grids: [string, TinyModelOptions, Options][] = [
    ["qwen2vl, full", { architecture: "qwen2vl" }, { trainable: "full" }],
    ["qwen3vl with LoRA", { architecture: "qwen3vl" }, { lora: { rank: 4 } }],
    ["qwen3, full", { architecture: "qwen3" }, { trainable: "full" }],
  ];
  it.each([...cases, ...grids])("%s: plain ones have the gradients of the CPU's own path", async (_, tiny, options) => {
    const path = await write(tiny);
    const ours = await loadEmulated({ path, ...small, ...options, device: "cpu" }, device());
    const cpu = await loadModel({ path, ...small, ...options, device: "cpu" });
    const differences = findDifferences(await readGradients(ours), await readGradients(cpu));
    expect(Object.keys(differences).length).toBeGreaterThan(5);
    expect(Object.entries(differences).filter(([, difference]) => !(difference < 2e-3))).toEqual([]);
    await Promise.all([ours.dispose(), cpu.dispose()]);
  });

  it("steps as the CPU's own path does", async () => {
    const path = await write({ architecture: "qwen3" });
    const step = async (model: LlamaModel) => {
      const { gradNorm } = await model.train(makeTreeBatch(), weightedLogprobs, { learningRate: 1e-2 });
      const weights = await model.readTensor("blk.0.attn_q.weight");
      await model.dispose();
      return { gradNorm, weights };
    };
    const ours = await step(await loadEmulated({ path, ...small, trainable: "full", device: "cpu" }, device()));
    const cpu = await step(await loadModel({ path, ...small, trainable: "full", device: "cpu" }));
    expect(ours.gradNorm / cpu.gradNorm).toBeCloseTo(1, 4);
    const error = Math.hypot(...cpu.weights.map((x, i) => x - ours.weights[i]!)) / Math.hypot(...cpu.weights);
    expect(error).toBeLessThan(1e-3);
  });
});

describe("operations that are replaced", () => {
  it("are four for Metal, by its source", () => {
    const supports = cutFunction(readMetalSource());
    const missing = replaced.filter((name) => !supports.includes(`GGML_OP_${name}:`));
    expect(missing).toEqual(["SOFT_MAX_BACK", "RMS_NORM_BACK", "GET_ROWS_BACK", "REPEAT_BACK"]);
  });

  it("a device's own answers decide", async () => {
    const path = await write({});
    const answers = "bool ggml_metal_device_supports_op(ggml_metal_device_t dev, const struct ggml_tensor * op)";
    const operations = buildMetalOperations(`${answers} { return dev->props.any && op->op != GGML_OP_RMS_NORM; }\n`);
    const load = loadEmulated({ path, ...small, trainable: "full", device: "cpu" }, { operations });
    await expect(load).rejects.toMatchObject({
      code: "engine/unsupported-operation",
      received: expect.stringContaining("RMS_NORM"),
    });
  });

  it.each(replaced)("%s: the gradients are those of ggml's operation", async (operation) => {
    // lfm2 picks rows within a layer.
    const path = await write({ architecture: operation === "GET_ROWS_BACK" ? "lfm2" : "qwen2" });
    const [with_, without] = [[], [operation]].map((refused) =>
      loadEmulated({ path, ...small, trainable: "full" }, { refused }),
    );
    const differences = findDifferences(await readGradients(await without!), await readGradients(await with_!));
    expect(Object.entries(differences).filter(([, difference]) => !(difference < 2e-5))).toEqual([]);
    await Promise.all([(await with_!).dispose(), (await without!).dispose()]);
  });
});

describe("a device that lacks an operation", () => {
  const refused = ["SOFT_MAX"];

  it("is refused when it is asked for, by the name of the operation and its types", async () => {
    const path = await write({});
    await expect(loadEmulated({ path, ...small, trainable: "full", device: "cpu" }, { refused })).rejects.toMatchObject(
      {
        code: "engine/unsupported-operation",
        received: expect.stringMatching(/SOFT_MAX -> f32 \[.*\] of f32 \[/),
      },
    );
  });

  it('is left aside by "auto", which says so and trains on the CPU', async () => {
    const path = await write({});
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const model = await loadEmulated({ path, ...small, trainable: "full" }, { refused });
    expect(warn).toHaveBeenCalledWith(expect.stringMatching(/trains and generates on the CPU: .*SOFT_MAX/), {
      code: "CRIA_DEVICE",
    });
    warn.mockRestore();
    expect((await model.train(makeTreeBatch(), weightedLogprobs, { learningRate: 1e-3 })).gradNorm).toBeGreaterThan(0);
    await model.dispose();
  });

  it("is refused for the optimizer's operation too, before anything is trained", async () => {
    const path = await write({});
    const device = { refused: ["OPT_STEP_ADAMW"] };
    await expect(loadEmulated({ path, ...small, trainable: "full", device: "cpu" }, device)).rejects.toMatchObject({
      code: "engine/unsupported-operation",
      received: expect.stringContaining("OPT_STEP_ADAMW"),
    });
  });

  it("does not matter where our kernels take its place", async () => {
    const path = await write({});
    const model = await loadEmulated({ path, ...small, trainable: "full", device: "cpu" }, { refused, kernels });
    await model.dispose();
  });
});

it.each(["llama", "qwen2", "qwen3"] as const)(
  "TF32 changes gradients of %s by as much as docs/devices.md has",
  async (architecture) => {
    const path = await write({ architecture });
    const gpu = await loadEmulated({ path, ...small, trainable: "full" }, { kernels: rounding });
    const cpu = await loadModel({ path, ...small, trainable: "full", device: "cpu" });
    const differences = Object.values(findDifferences(await readGradients(gpu), await readGradients(cpu)));
    const sorted = differences.sort((a, b) => a - b);
    expect(sorted[sorted.length >> 1]).toBeGreaterThan(7e-4);
    expect(sorted[sorted.length >> 1]).toBeLessThan(1.7e-3);
    expect(sorted.at(-1)).toBeLessThan(4e-3);
    await Promise.all([gpu.dispose(), cpu.dispose()]);
  },
);
