import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { LossFunction } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { exportModel, type LlamaModel, readGguf, writeGguf } from "./index.js";
import { TinyModels } from "./testing/index.js";

/** Adapters made by llama.cpp's own converter, and PyTorch's results for them: fixtures/adapter/make.py. */
interface Expected {
  rank: number;
  alpha: number;
  tokenIds: number[];
  logprobs: number[];
}

const fixtures = join(import.meta.dirname, "..", "fixtures");
const expectations = JSON.parse(readFileSync(join(fixtures, "adapter", "expected.json"), "utf8")) as Record<
  string,
  Expected
>;
const base = (name: string) => join(fixtures, "torch", `${name}.gguf`);
const adapter = (name: string) => join(fixtures, "adapter", `${name}.gguf`);

const models = new TinyModels();
afterAll(() => models.cleanUp());

const load = (name: string, lora: object = {}, path = base(name)): Promise<LlamaModel> =>
  models.load({}, { path, lora: { path: adapter(name), ...lora } });
const score = async (model: LlamaModel, tokenIds: number[], on = true) =>
  (await model.score([{ tokenIds }], { adapter: on }))[0]!.logprobs;

function expectClose(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number) {
  expect(actual.length).toBe(expected.length);
  const distances = Array.from(actual, (x, i) => Math.abs(x - expected[i]!));
  expect(Math.max(...distances)).toBeLessThan(tolerance);
}

describe.each(Object.entries(expectations))("an adapter of llama.cpp's converter: %s", (name, expected) => {
  const { tokenIds, logprobs, rank, alpha } = expected;

  it("has the logprobs of its PEFT values, in training and in generation", async () => {
    const model = await load(name);
    expectClose(await score(model, tokenIds), logprobs, 2e-5);
    // Without the adapter the policy differs, so the comparison above can fail.
    const without = await score(model, tokenIds, false);
    expect(Math.max(...without.map((x, i) => Math.abs(x - logprobs[i]!)))).toBeGreaterThan(0.3);
    const { tokenIds: sampled, logprobs: bySampler } = await model
      .createSequence()
      .generate(Int32Array.from(tokenIds), { maxTokens: 8, temperature: 1, seed: 3 });
    const scored = await score(model, [...tokenIds, ...sampled]);
    expectClose(scored.subarray(tokenIds.length), bySampler, 1e-4);
  });

  it("is the same file again when saved, and merges to the same model", async () => {
    const model = await load(name);
    const [saved, merged] = ["saved", "merged"].map((part) => join(models.folder, `${name}-${part}.gguf`)) as [
      string,
      string,
    ];
    await model.saveAdapter(saved);
    const [theirs, ours] = [await readGguf(adapter(name)), await readGguf(saved)];
    for (const key of ["general.architecture", "general.type", "adapter.type", "adapter.lora.alpha"])
      expect(ours.metadata.get(key)!.value, key).toBe(theirs.metadata.get(key)!.value);
    expect(ours.metadata.get("adapter.lora.alpha")!.value).toBe(alpha);
    expect(ours.tensors.map((t) => t.name).sort()).toEqual(theirs.tensors.map((t) => t.name).sort());
    for (const { name: tensor, shape } of theirs.tensors) {
      expect(shape[tensor.endsWith("a") ? 1 : 0]).toBe(rank);
      expect(ours.tensors.find((t) => t.name === tensor)!.shape).toEqual(shape);
    }
    const again = await load(name, { path: saved });
    expect(await score(again, tokenIds)).toEqual(await score(model, tokenIds));
    await exportModel({ base: base(name), adapter: adapter(name), output: merged });
    const whole = await models.load({}, { path: merged, trainable: "full" });
    expectClose(await score(whole, tokenIds), logprobs, 2e-5);
  });

  it("training goes on from it", async () => {
    const model = await load(name, { rank, alpha });
    const raise: LossFunction = ({ logprobs: now }) => ({
      loss: -now.reduce((sum, x) => sum + x, 0),
      dLogprobs: new Float32Array(now.length).fill(-1),
    });
    const lossMask = tokenIds.map((_, t) => Number(t > 0));
    const losses: number[] = [];
    for (let step = 0; step < 4; step++)
      losses.push((await model.train([{ tokenIds, lossMask }], raise, { learningRate: 3e-3 })).loss);
    const start = -logprobs.reduce((sum, x) => sum + x, 0);
    expect(losses[0]).toBeCloseTo(start, 3);
    expect(losses[3]).toBeLessThan(start - 0.5);
  });
});

describe("an adapter that does not fit", () => {
  it("to another base model, rank, alpha or layers says so", async () => {
    const mismatch = (received: object) => ({ code: "engine/adapter-mismatch", ...received });
    await expect(load("qwen3", {}, base("qwen2"))).rejects.toMatchObject(
      mismatch({ subject: adapter("qwen3"), expected: "qwen2", received: "qwen3" }),
    );
    const wide = await models.write({ embedding: 64 });
    await expect(load("qwen3", {}, wide)).rejects.toMatchObject(
      mismatch({
        expected: expect.stringMatching(/^A \[64, rank\]/),
        received: expect.stringMatching(/^A \[\d+, 4\]/),
      }),
    );
    const shallow = await models.write({ layers: 1 });
    await expect(load("qwen3", {}, shallow)).rejects.toMatchObject(
      mismatch({ received: expect.stringMatching(/^blk\.1\./) }),
    );
    await expect(load("qwen3", { rank: 8 })).rejects.toMatchObject(
      mismatch({ expected: "rank 8", received: expect.stringMatching(/^rank 4 of blk\.0\./) }),
    );
    await expect(load("qwen3", { alpha: 8 })).rejects.toMatchObject(
      mismatch({ expected: "alpha 8", received: "alpha 12" }),
    );
    await expect(load("qwen2", { targets: ["attn_q"] })).rejects.toMatchObject(
      mismatch({ expected: "attn_q", received: expect.stringMatching(/^attn_q, attn_v/) }),
    );
    await expect(load("qwen2", { path: base("qwen2") })).rejects.toMatchObject({
      code: "engine/not-an-adapter",
      subject: base("qwen2"),
    });
    await expect(load("qwen2", { path: "none.gguf" })).rejects.toMatchObject({
      code: "engine/file-not-found",
      subject: "none.gguf",
    });
  });

  it.each([
    ["embedding", "token_embd.weight.lora_a"],
    ["norm", "blk.0.attn_norm.weight"],
  ])("with an adapted %s is refused: it would not be trained, or not be applied", async (what, received) => {
    const path = adapter(`with-${what}`);
    await expect(load("qwen3", { path })).rejects.toMatchObject({ code: "engine/unsupported-tensor", received });
    const output = join(models.folder, "never.gguf");
    const merging = exportModel({ base: base("qwen3"), adapter: path, output });
    await expect(merging).rejects.toMatchObject({ code: "engine/not-an-adapter", subject: path });
  });

  it("with experts of another number is refused, alone and in merging", async () => {
    const targets = ["ffn_up_exps"];
    const path = join(models.folder, "experts.gguf");
    const four = await models.load({ architecture: "qwen3moe", layers: 1 }, { lora: { rank: 2, targets } });
    await four.saveAdapter(path);
    const six = { architecture: "qwen3moe", layers: 1, experts: { count: 6, used: 2 } } as const;
    const base = await models.write(six);
    await expect(models.load({}, { path: base, lora: { path } })).rejects.toMatchObject({
      code: "engine/adapter-mismatch",
      expected: "A [32, rank, 6], B [rank, 48, 6]",
      received: "A [32, 2, 4], B [2, 48, 4]",
    });
    const output = join(models.folder, "never.gguf");
    await expect(exportModel({ base, adapter: path, output })).rejects.toMatchObject({
      code: "engine/not-an-adapter",
    });
  });

  it("without alpha, the product counts as it is, as in llama.cpp", async () => {
    const path = join(models.folder, "no-alpha.gguf");
    const value = (of: number) => Float32Array.from({ length: 64 }, (_, i) => 0.02 * Math.sin(of + i));
    const pair = (alpha: number | null) =>
      writeGguf(path, {
        metadata: {
          "general.architecture": { type: "string", value: "qwen3" },
          "adapter.type": { type: "string", value: "lora" },
          ...(alpha === null ? {} : { "adapter.lora.alpha": { type: "float32", value: alpha } }),
        },
        tensors: [
          { name: "blk.0.attn_q.weight.lora_a", type: "f32", shape: [32, 2], data: value(1) },
          {
            name: "blk.0.attn_q.weight.lora_b",
            type: "f32",
            shape: [2, 64],
            data: Float32Array.of(...value(2), ...value(3)),
          },
        ],
      });
    const tokenIds = expectations.qwen3!.tokenIds;
    const results: Float32Array[] = [];
    for (const alpha of [null, 0, 2]) {
      await pair(alpha);
      results.push(await score(await load("qwen3", { path }), tokenIds));
      const output = join(models.folder, "no-alpha-merged.gguf");
      await exportModel({ base: base("qwen3"), adapter: path, output });
      const merged = await models.load({}, { path: output, trainable: "full" });
      expectClose(await score(merged, tokenIds), results[0]!, 2e-5);
    }
    expect(results[1]).toEqual(results[0]);
    expectClose(results[2]!, results[0]!, 1e-6);
    const without = await score(await load("qwen3", { path }), tokenIds, false);
    expect(Math.max(...without.map((x, i) => Math.abs(x - results[0]![i]!)))).toBeGreaterThan(1e-4);
  });
});
