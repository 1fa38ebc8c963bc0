import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { readGguf } from "./gguf-files/read-gguf.js";
import { countBytes, listTypes, type TensorType } from "./gguf-files/tensor-types.js";
import { writeGguf } from "./gguf-files/write-gguf.js";
import { quantizeModel } from "./index.js";
import {
  describeTinyModel,
  makeTreeBatch,
  type TinyModelOptions,
  TinyModels,
  weightedLogprobs,
} from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

// Rows of 256 values divide into the blocks of every type.
const wide: TinyModelOptions = {
  architecture: "qwen2",
  embedding: 256,
  heads: 4,
  kvHeads: 4,
  headSize: 64,
  feedForward: 256,
  layers: 1,
};

const files = {
  tied: describeTinyModel({ ...wide, tied: true }),
  untied: describeTinyModel(wide),
};

/** The file with one tensor stored as another type; its values are zeros, because ggml cannot write every type. */
async function writeAs(name: string, type: TensorType, { metadata, tensors } = files.untied): Promise<string> {
  const path = join(models.folder, "changed.gguf");
  const changed = tensors.map((tensor) => {
    if (tensor.name !== name) return tensor;
    const bytes = new Uint8Array(countBytes(type, tensor.shape));
    return { name, type: type.name, shape: tensor.shape, makeBytes: async () => bytes };
  });
  await writeGguf(path, { metadata, tensors: changed });
  return path;
}

async function use(path: string, trainable: "lora" | "none"): Promise<"works" | string> {
  try {
    const model = await models.load({}, { path, trainable, ...(trainable === "lora" && { lora: { rank: 2 } }) });
    await model.createSequence().generate([1, 2, 3], { maxTokens: 2, stopTokens: [] });
    if (trainable === "lora") {
      await model.score([{ tokenIds: [1, 2, 3] }]);
      const { gradNorm } = await model.train(makeTreeBatch(), weightedLogprobs, null);
      expect(gradNorm).toSatisfy(Number.isFinite);
    }
    await model.dispose();
    return "works";
  } catch (error) {
    expect(error).toBeInstanceOf(EngineError);
    return (error as EngineError).code;
  }
}

const numbers = ["i8", "i16", "i32", "i64", "f64"];
/** Neither floats nor quantized values: ggml multiplies other rows by them, and stores none in files. */
const intermediate = ["q8_1", "q8_K"];

// ggml checks no type of a file: with a wrong one its threads assert, or call a function that does not exist.
describe("a model file is refused for a tensor's type, or works", () => {
  for (const type of listTypes()) {
    const isMatrixType = ![...numbers, ...intermediate].includes(type.name);

    for (const name of ["blk.0.attn_norm.weight", "blk.0.attn_k.bias", "output_norm.weight"]) {
      it(`${name} as ${type.name}`, async () => {
        const outcome = await use(await writeAs(name, type), "none");
        expect(outcome).toBe(type.name === "f32" ? "works" : "engine/bad-model");
      });
    }

    for (const name of ["blk.0.ffn_up.weight", "output.weight", "token_embd.weight"]) {
      for (const trainable of ["none", "lora"] as const) {
        it(`${name} as ${type.name}, trainable ${trainable}`, async () => {
          const outcome = await use(await writeAs(name, type), trainable);
          expect(outcome).toBe(isMatrixType ? "works" : "engine/bad-model");
        });
      }
    }

    it(`an embedding that is the output too as ${type.name}`, async () => {
      const outcome = await use(await writeAs("token_embd.weight", type, files.tied), "none");
      expect(outcome).toBe(isMatrixType ? "works" : "engine/bad-model");
    });
  }

  it("names the tensor and the received value", async () => {
    const path = await writeAs("output_norm.weight", listTypes().find(({ name }) => name === "f16")!);
    await expect(models.load({}, { path })).rejects.toMatchObject({
      code: "engine/bad-model",
      expected: expect.stringContaining("output_norm.weight"),
      received: "f16",
    });
  });

  it("quantizeModel refuses the same", async () => {
    const path = await writeAs("output_norm.weight", listTypes().find(({ name }) => name === "bf16")!);
    const output = join(models.folder, "quantized.gguf");
    await expect(quantizeModel({ input: path, output, type: "Q8_0" })).rejects.toMatchObject({
      code: "engine/bad-model",
    });
  });
});

describe("a tensor with a dimension of 0 is refused", () => {
  for (const shape of [[0, 4], [4, 0], [0], [4, 1, 0]]) {
    it(`[${shape.join(", ")}]`, async () => {
      // The writer refuses such shapes too, so the file is patched afterwards.
      const path = join(models.folder, "empty.gguf");
      const written = shape.map((n) => n || 1);
      const data = new Float32Array(written.reduce((product, n) => product * n, 1));
      const { metadata, tensors } = files.untied;
      await writeGguf(path, {
        metadata,
        tensors: [...tensors, { name: "one.more", type: "f32", shape: written, data }],
      });
      const bytes = readFileSync(path);
      const axes = bytes.indexOf("one.more") + "one.more".length + 4;
      for (const [i, n] of shape.entries()) bytes.writeBigUInt64LE(BigInt(n), axes + 8 * i);
      writeFileSync(path, bytes);
      const output = join(models.folder, "quantized.gguf");
      const refused = { code: "engine/empty-tensor" };
      await expect(quantizeModel({ input: path, output, type: "Q8_0" })).rejects.toMatchObject(refused);
      await expect(models.load({}, { path })).rejects.toMatchObject(refused);
      await expect(models.load({}, { trainable: "lora", lora: { path } })).rejects.toMatchObject(refused);
      await expect(readGguf(path)).rejects.toMatchObject({ code: "engine/not-gguf" });
    });
  }
});

describe("half of a LoRA pair", () => {
  for (const type of listTypes()) {
    it(`as ${type.name} works or is refused`, async () => {
      const tensors = [
        { name: "blk.0.ffn_up.weight.lora_a", shape: [256, 256] },
        { name: "blk.0.ffn_up.weight.lora_b", shape: [256, 256] },
      ].map((tensor) => {
        const bytes = new Uint8Array(countBytes(type, tensor.shape));
        return { ...tensor, type: type.name, makeBytes: async () => bytes };
      });
      const text = (value: string) => ({ type: "string", value }) as const;
      const path = join(models.folder, `adapter-${type.name}.gguf`);
      const metadata = { "general.architecture": text("qwen2"), "adapter.type": text("lora") };
      await writeGguf(path, { metadata, tensors });
      const base = join(models.folder, "base.gguf");
      await writeGguf(base, files.untied);
      const loading = models.load({}, { path: base, trainable: "lora", lora: { path } });
      if ([...numbers, ...intermediate].includes(type.name))
        await expect(loading).rejects.toMatchObject({ code: "engine/unsupported-tensor" });
      else await (await loading).createSequence().generate([1, 2, 3], { maxTokens: 2, stopTokens: [] });
    });
  }
});
