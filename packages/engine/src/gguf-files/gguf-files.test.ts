import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { exportModel, type GgufTensorInfo, quantizeModel, readGguf, writeGguf } from "../index.js";
import { getAddon } from "../native.js";
import { describeTinyModel, makeNormals, TinyModels } from "../testing/index.js";
import { readTensorBytes } from "./read-gguf.js";
import { findCodec } from "./tensor-codecs.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const file = (name: string) => join(models.folder, name);

describe("reading", () => {
  it("finds every tensor where the writer put it", async () => {
    const path = await models.write({ seed: 3, tied: false });
    const header = await readGguf(path);
    expect(header.metadata.get("general.architecture")!.value).toBe("qwen3");
    expect(header.metadata.get("tokenizer.ggml.tokens")!.value).toEqual({ arrayLength: 288 });
    const model = await models.load({}, { path, trainable: "full" });
    const bytes = readFileSync(path);
    expect(header.tensors).toHaveLength(model.listTensors().length);
    for (const { name, offset, bytes: length } of header.tensors) {
      const values = await model.readTensor(name);
      expect(Buffer.from(values.buffer).equals(bytes.subarray(offset, offset + length)), name).toBe(true);
    }
  });

  it("refuses a file that is no GGUF or ends early, by its path", async () => {
    const path = await models.write();
    const whole = readFileSync(path);
    for (const length of [0, 3, 30, 5000, whole.length - 10]) {
      writeFileSync(file("cut.gguf"), whole);
      truncateSync(file("cut.gguf"), length);
      await expect(readGguf(file("cut.gguf"))).rejects.toMatchObject({
        code: "engine/not-gguf",
        subject: file("cut.gguf"),
      });
    }
    await expect(readGguf(file("none.gguf"))).rejects.toMatchObject({
      code: "engine/not-gguf",
      received: expect.stringContaining("ENOENT"),
    });
  });
});

describe("writing", () => {
  it.each(["f32", "f16", "bf16", "q8_0", "q4_K", "q4_0"] as const)(
    "%s: the file has the native writer's bytes",
    async (type) => {
      const content = describeTinyModel({
        type,
        embedding: 256,
        feedForward: 256,
        heads: 8,
        headSize: 32,
        architecture: "qwen2",
      });
      await writeGguf(file("ours.gguf"), content);
      await getAddon().writeGguf(file("native.gguf"), content);
      expect(readFileSync(file("ours.gguf")).equals(readFileSync(file("native.gguf")))).toBe(true);
      expect(readdirSync(models.folder).filter((name) => /tmp|values/.test(name))).toEqual([]);
    },
  );

  it("takes entries and tensors of a file that was read, beside its own", async () => {
    const path = await models.write({ type: "q8_0", feedForward: 64 });
    const { metadata, tensors } = await readGguf(path);
    const source = await open(path);
    const own = { name: "own", type: "f32" as const, shape: [2], data: Float32Array.of(1, 2) };
    const copied = tensors.map((tensor) => ({
      name: tensor.name,
      type: tensor.type.name,
      shape: tensor.shape,
      makeBytes: () => readTensorBytes(source, tensor),
    }));
    const output = file("mixed.gguf");
    const alignment = { type: "uint32" as const, value: 64 };
    const entries = { ...Object.fromEntries(metadata), "general.alignment": alignment };
    await writeGguf(output, { metadata: entries, tensors: [own, ...copied] });
    await source.close();
    const written = await readGguf(output);
    expect(written.alignment).toBe(64);
    expect([...written.metadata.keys()]).toEqual([...metadata.keys(), "general.alignment"]);
    const [before, after] = [readFileSync(path), readFileSync(output)];
    const bytesOf = (bytes: Buffer, { offset, bytes: length }: GgufTensorInfo) =>
      bytes.subarray(offset, offset + length);
    for (const [i, tensor] of tensors.entries()) {
      expect(written.tensors[i + 1]!.offset % 64).toBe(0);
      expect(bytesOf(after, written.tensors[i + 1]!).equals(bytesOf(before, tensor)), tensor.name).toBe(true);
    }
    expect(bytesOf(after, written.tensors[0]!).readFloatLE(4)).toBe(2);
  });

  const name = { subject: "tensors[1].name", expected: "a unique name of 1 to 63 bytes" };
  it.each<[string, object, object]>([
    ["a name twice", { name: "y" }, { ...name, received: '"y"' }],
    ["a long name", { name: "ä".repeat(32) }, { ...name, received: `"${"ä".repeat(32)}"` }],
    ["an unknown type", { type: "q9" }, { subject: "x", received: "q9" }],
    ["no dimension", { shape: [] }, { expected: "1 to 4 dimensions of 1 to 2^31", received: "[]" }],
    ["a dimension of 0", { shape: [64, 0] }, { expected: "1 to 4 dimensions of 1 to 2^31", received: "[64, 0]" }],
    ["half blocks", { type: "q8_0", shape: [2, 32] }, { expected: "a multiple of 32", received: "2" }],
    ["too few values", { shape: [64, 2] }, { expected: "128 values", received: "64" }],
    [
      "a type that needs more than values",
      { type: "iq2_xs", shape: [256], data: new Float32Array(256) },
      { subject: "tensor.type", received: '"iq2_xs"' },
    ],
  ])("%s is an error, and leaves nothing behind", async (_, change, fields) => {
    const tensor = { name: "x", type: "f32" as const, shape: [64], data: new Float32Array(64) };
    const other = { ...tensor, name: "y" };
    const written = writeGguf(file("wrong.gguf"), { metadata: {}, tensors: [other, { ...tensor, ...change }] });
    await expect(written).rejects.toMatchObject({ code: "engine/bad-option", ...fields });
    expect(readdirSync(models.folder).filter((name) => name.startsWith("wrong"))).toEqual([]);
  });

  it.each([
    { type: "uint32", value: -1 },
    { type: "int32", value: 1.5 },
    { type: "float32", value: Number.NaN },
    { type: "bool", value: 1 },
    { type: "string", value: 5 },
    { type: "array", of: "int32", value: ["a"] },
    { type: "uint8", value: 1 },
  ])("refuses %j as a value", async (value) => {
    const written = async () => writeGguf(file("wrong.gguf"), { metadata: { key: value as never }, tensors: [] });
    await expect(written()).rejects.toMatchObject({ code: "engine/bad-option", subject: 'metadata["key"]' });
  });
});

describe("tensor types", () => {
  // ggml itself is the reference: the native writer quantizes with its functions.
  it.each(["f32", "f16", "bf16", "q8_0"] as const)("%s has ggml's bytes, and comes back", async (type) => {
    const normal = makeNormals(11);
    const data = Float32Array.from({ length: 64 * 50 }, (_, i) => normal() * 10 ** ((i % 13) - 9));
    // Ties, zeros, subnormal halves, and values that overflow a half.
    data.set(
      [0, -0, 1, -1, 0.5, 2 ** -24, 2 ** -25, 3 * 2 ** -25, 2 ** -14 - 2 ** -25, 65504, 65519, 65520, 2049, 2051],
      0,
    );
    data.fill(0, 64, 96);
    const path = file(`${type}.gguf`);
    await getAddon().writeGguf(path, { metadata: {}, tensors: [{ name: "x", type, shape: [64, 50], data }] });
    const [tensor] = (await readGguf(path)).tensors;
    const native = readFileSync(path).subarray(tensor!.offset, tensor!.offset + tensor!.bytes);
    const bytes = Buffer.alloc(tensor!.bytes);
    findCodec(type)!.encode(data, bytes);
    expect(bytes.equals(native)).toBe(true);
    const values = new Float32Array(data.length);
    findCodec(type)!.decode(bytes, values);
    const again = Buffer.alloc(bytes.length);
    findCodec(type)!.encode(values, again);
    expect(again.equals(bytes)).toBe(true);
  });
});

describe("merging an adapter into its model", () => {
  /** A model and an adapter with noise in every pair; logprobs of some text with both. */
  async function makePair(type: "f32" | "f16" | "q8_0" | "q4_K", shape: object = {}, rank = 4) {
    const path = await models.write({ type, embeddingScale: 0.3, ...shape });
    const model = await models.load({}, { path, lora: { rank, alpha: 3 * rank } });
    const normal = makeNormals(4);
    for (const { name, shape: s } of model.listTensors().filter((t) => t.name.endsWith(".lora_b")))
      await model.writeTensor(
        name,
        Float32Array.from({ length: s[0]! * s[1]! }, () => 0.1 * normal()),
      );
    const adapter = file(`${type}-adapter.gguf`);
    await model.saveAdapter(adapter);
    return { path, adapter, model };
  }

  const tokenIds = Array.from({ length: 40 }, (_, i) => (i * 37) % 256);
  const score = async (model: Awaited<ReturnType<typeof makePair>>["model"], adapter = true) =>
    (await model.score([{ tokenIds }], { adapter }))[0]!.logprobs;
  const distance = (a: Float32Array, b: Float32Array) =>
    a.reduce((sum, x, i) => sum + Math.abs(x - b[i]!), 0) / a.length;

  it.each([
    ["f32", {}, 1e-5],
    ["f16", { embedding: 64 }, 1e-2],
    ["q8_0", { embedding: 64, feedForward: 64 }, 0.1],
    ["q4_K", { embedding: 256, heads: 8, headSize: 32, feedForward: 256 }, 0.2],
  ] as const)("%s: the merged model speaks as model and adapter do", async (type, shape, tolerance) => {
    const { path, adapter, model } = await makePair(type, shape);
    const output = file(`${type}-merged.gguf`);
    const result = await exportModel({ base: path, adapter, output });
    expect(result.merged).toBe(14);
    const merged = await models.load({}, { path: output, lora: { rank: 1 } });
    const wanted = await score(model);
    expect(distance(await score(merged), wanted)).toBeLessThan(tolerance);
    expect(distance(await score(model, false), wanted)).toBeGreaterThan(10 * tolerance);
    expect(merged.chatTemplate).toBe(model.chatTemplate);
  });

  it("loads an adapter of rank 1, whose file has no axis for it", async () => {
    const { path, adapter, model } = await makePair("f32", {}, 1);
    const output = file("rank-1-merged.gguf");
    expect((await exportModel({ base: path, adapter, output })).merged).toBe(14);
    const merged = await models.load({}, { path: output, lora: { rank: 1 } });
    expect(distance(await score(merged), await score(model))).toBeLessThan(1e-5);
  });

  const wideShape = { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.05 };
  let wide: Awaited<ReturnType<typeof makePair>> | undefined;

  // Mean difference between a logprob and that of model and adapter. Random weights lose more than trained ones.
  it.each([
    ["F32", 1e-5, 0],
    ["BF16", 0.02, 32],
    ["F16", 2e-3, 1],
    ["Q8_0", 0.05, 7],
    ["Q6_K", 0.1, 18],
    ["q5_k_m", 0.15, 17],
    ["Q4_K_M", 0.3, 15],
    ["Q4_0", 0.4, 2],
  ] as const)("--quantize %s: it loads, and speaks nearly the same", async (quantize, tolerance, fileType) => {
    wide ??= await makePair("f32", wideShape);
    const { path, adapter, model } = wide;
    const output = file(`quantized-${quantize}.gguf`);
    const { types, merged } = await exportModel({ base: path, adapter, output, quantize, threads: 1 });
    expect(merged).toBe(14);
    // Norms stay F32; in a tied model the embedding is quantized too.
    expect(types.f32).toBe(quantize === "F32" ? 24 : 9);
    const header = await readGguf(output);
    expect(header.metadata.get("general.file_type")!.value).toBe(fileType);
    expect(header.metadata.get("tokenizer.chat_template")!.value).toBe(model.chatTemplate);
    const quantized = await models.load({}, { path: output, lora: { rank: 1 } });
    expect(distance(await score(quantized), await score(model))).toBeLessThan(tolerance);
  });

  it("--quantize of a K-quant base, and without an adapter; an unknown type lists all; nothing is left behind", async () => {
    const { path, adapter, model } = await makePair("q4_K", wideShape);
    const output = file("again.gguf");
    expect(
      (await exportModel({ base: path, adapter, output, quantize: "Q4_K_M", threads: 1 })).types.q4_K,
    ).toBeGreaterThan(5);
    const again = await models.load({}, { path: output, lora: { rank: 1 } });
    expect(distance(await score(again), await score(model))).toBeLessThan(0.5);
    const { types } = await exportModel({ base: path, output, quantize: "F16", threads: 1 });
    expect(types).toEqual({ f16: 15, f32: 9 });
    await expect(exportModel({ base: path, output, quantize: "Q7_K" })).rejects.toMatchObject({
      code: "config/bad-argument",
      subject: "quantize",
      expected: expect.stringContaining("F32, F16, BF16, Q8_0"),
      received: "Q7_K",
    });
    const inFile = join(path, "x.gguf");
    await expect(exportModel({ base: path, adapter, output: inFile, quantize: "Q8_0" })).rejects.toMatchObject({
      code: "engine/write-failed",
    });
    await expect(quantizeModel({ input: path, output: inFile, type: "Q8_0" })).rejects.toMatchObject({
      code: "engine/quantize-failed",
      subject: inFile,
    });
    await expect(quantizeModel({ input: adapter, output, type: "Q8_0" })).rejects.toMatchObject({
      code: "engine/quantize-failed",
      subject: output,
    });
    expect(readdirSync(models.folder).filter((name) => /tmp|\.merged/.test(name))).toEqual([]);
  });

  it("quantizing leaves the event loop free", async () => {
    const path = await models.write({ embedding: 256, layers: 3, feedForward: 512 });
    let ticks = 0;
    const timer = setInterval(() => ticks++, 2);
    await quantizeModel({ input: path, output: file("off-thread.gguf"), type: "Q4_K_M", threads: 1 });
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(3);
  });

  it("another model's adapter, and a model as adapter, are refused; nothing is left behind", async () => {
    const { adapter } = await makePair("f32");
    const other = await models.write({ embedding: 64 });
    const output = file("never.gguf");
    const unfit = (subject: string) => ({ code: "engine/not-an-adapter", subject });
    await expect(exportModel({ base: other, adapter, output })).rejects.toMatchObject(unfit(adapter));
    await expect(exportModel({ base: other, adapter: other, output })).rejects.toMatchObject({
      ...unfit(other),
      expected: expect.stringContaining("adapter.type"),
    });
    expect(existsSync(output)).toBe(false);
    const inFile = join(other, "x.gguf");
    await expect(exportModel({ base: other, output: inFile })).rejects.toMatchObject({ code: "engine/write-failed" });
  });
});
