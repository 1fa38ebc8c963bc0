import { afterAll, describe, expect, it } from "vitest";
import { getAddon } from "./native.js";
import { TinyModels } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

describe("defaults of loadModel", () => {
  it.each([
    [512, 512],
    [4096, 4096],
    [8192, 4096],
    [131_072, 4096],
  ])("contextSize of a model trained with %i tokens: %i", async (contextLength, expected) => {
    const model = await models.load({ contextLength, layers: 1 }, { contextSize: undefined, maxSequences: 1 });
    expect(model.info).toMatchObject({ contextSize: expected, trainingContextSize: contextLength });
    const prompt = Array.from({ length: expected }, (_, i) => i % 250);
    await expect(model.createSequence().generate(prompt, { maxTokens: 1 })).rejects.toMatchObject({
      code: "engine/context-exceeded",
      expected: `at most ${expected} tokens`,
    });
    await model.dispose();
  });

  it("contextSize as given, beyond the training context too, but not 0", async () => {
    const path = await models.write({ contextLength: 512, layers: 1 });
    const model = await models.load({}, { path, contextSize: 700 });
    expect(model.info.contextSize).toBe(700);
    await expect(models.load({}, { path, contextSize: 0 })).rejects.toMatchObject({
      code: "engine/bad-option",
      subject: "loadModel.contextSize",
    });
  });

  it("the device is named as ggml names its backend", async () => {
    const model = await models.load({ layers: 1 }, { device: "cpu" });
    expect(model.info.device).toBe("cpu");
  });
});

describe('flashAttention "auto"', () => {
  it.each([
    [true, false, "f16", 64, false],
    [true, true, "f32", 64, false],
    [true, false, "q8_0", 64, true],
    [true, true, "q8_0", 20, true],
    [false, false, "f16", 64, true],
    [false, false, "f16", 128, true],
    [false, false, "f16", 20, false],
    [false, false, "f32", 64, false],
    [false, true, "f16", 64, false],
    [false, true, "q8_0", 64, true],
  ])(
    "on the CPU: %s, trainable: %s, %s keys and values, heads of %i: %s",
    (onCpu, trainable, kvType, size, expected) => {
      expect(getAddon().chooseFlashAttention(onCpu, trainable, kvType, size)).toBe(expected);
    },
  );

  it("is the default, and a given value overrides it", async () => {
    const path = await models.write({ layers: 1, headSize: 64 });
    const read = async (options: object) =>
      (await models.load({}, { path, device: "cpu", ...options })).info.flashAttention;
    expect(await read({})).toBe(false);
    expect(await read({ flashAttention: "auto" })).toBe(false);
    expect(await read({ flashAttention: true })).toBe(true);
    expect(await read({ kvType: "q8_0" })).toBe(true);
    await expect(read({ kvType: "q8_0", flashAttention: false })).rejects.toMatchObject({
      code: "engine/bad-option",
      received: '"q8_0" with flashAttention false',
    });
    await expect(read({ flashAttention: "fast" })).rejects.toMatchObject({
      code: "engine/bad-option",
      subject: "loadModel.flashAttention",
      received: '"fast"',
    });
  });
});
