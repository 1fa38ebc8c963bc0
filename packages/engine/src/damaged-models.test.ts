import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { writeGguf } from "./gguf-files/write-gguf.js";
import { loadModel } from "./load-model.js";
import type { LoadModelOptions } from "./load-native.js";
import type { GgufFile, GgufTensor, GgufValue } from "./native-types.js";
import { describeTinyModel, type TinyModelOptions, TinyModels } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let written = 0;
async function load(
  change: (file: GgufFile) => void,
  options: TinyModelOptions = {},
  more: Omit<LoadModelOptions, "path"> = {},
) {
  const file = describeTinyModel(options);
  change(file);
  const path = join(models.folder, `damaged-${written++}.gguf`);
  await writeGguf(path, file);
  return models.load({}, { path, ...more });
}

const set = (key: string, value: GgufValue) => (file: GgufFile) => {
  file.metadata[`qwen3.${key}`] = value;
};
const u32 = (value: number) => ({ type: "uint32", value }) as const;

// Each of these files once triggered an assertion of llama.cpp, which ends the process.
describe("a model file with impossible metadata is refused", () => {
  const cases: [string, (file: GgufFile) => void, object][] = [
    [
      "two tokens with one text",
      ({ metadata }) => {
        const tokens = metadata["tokenizer.ggml.tokens"] as unknown as { value: string[] };
        tokens.value[270] = tokens.value[65]!;
      },
      { received: expect.stringMatching(/as token 65 and as token 270$/) },
    ],
    ["no layer", set("block_count", u32(0)), { expected: "1 to 512 layers", received: "0" }],
    ["too many layers", set("block_count", u32(4e9)), { expected: "1 to 512 layers", received: "4000000000" }],
    [
      "more prediction layers than layers",
      set("nextn_predict_layers", u32(3)),
      { expected: "at most block_count, 2", received: "3" },
    ],
    [
      "more experts used than there are",
      set("expert_used_count", u32(2)),
      { expected: "at most expert_count, 0", received: "2" },
    ],
    ["experts of which none is used", set("expert_count", u32(4)), { expected: "1 to expert_count, 4" }],
    ["too many experts", set("expert_count", u32(5000)), { expected: "at most 1024", received: "5000" }],
    [
      "an odd number of dimensions to rotate",
      set("rope.dimension_count", u32(7)),
      { expected: expect.stringContaining("even"), received: "7 in layer 0" },
    ],
    [
      "no dimension to rotate",
      set("rope.dimension_count", u32(0)),
      { expected: expect.stringContaining("2 to 16"), received: "0 in layer 0" },
    ],
    [
      "more dimensions to rotate than a head has",
      set("rope.dimension_count", u32(18)),
      { expected: expect.stringContaining("16"), received: "18 in layer 0" },
    ],
    [
      "a norm's epsilon below 0",
      set("attention.layer_norm_rms_epsilon", { type: "float32", value: -1 }),
      { expected: "a finite number of at least 0", received: "-1.000000" },
    ],
  ];
  for (const [name, change, fields] of cases) {
    it(name, async () => {
      const error = await load(change).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(EngineError);
      expect(error).toMatchObject({ code: "engine/bad-model", ...fields });
    });
  }

  it("attention in every layer that is a multiple of 0", async () => {
    const change = ({ metadata }: GgufFile) => {
      metadata["qwen35.full_attention_interval"] = u32(0);
    };
    const loading = load(change, { architecture: "qwen35", layers: 2 });
    await expect(loading).rejects.toMatchObject({ code: "engine/bad-model", expected: "at least 1", received: "0" });
  });

  it("an odd number of dimensions to rotate in layers with a window", async () => {
    const change = ({ metadata }: GgufFile) => {
      metadata["gemma3.rope.dimension_count_swa"] = u32(7);
    };
    await expect(load(change, { architecture: "gemma3" })).rejects.toMatchObject({
      code: "engine/bad-model",
      expected: expect.stringContaining("rope.dimension_count_swa of 2 to 16"),
      received: "7 in layer 0",
    });
  });

  const sections = (...value: number[]) => ({ type: "array", of: "int32", value }) as const;
  const pairs = expect.stringMatching(/at most 16$/);
  for (const [name, key, value, expected, received] of [
    ["no pair of dimensions for any position", "rope.dimension_sections", sections(0, 0, 0, 0), pairs, "0, 0, 0, 0"],
    ["pairs for no position that a token has", "rope.dimension_sections", sections(0, 0, 0, 8), pairs, "0, 0, 0, 8"],
    ["more pairs than a head has dimensions", "rope.dimension_sections", sections(8, 8, 8, 0), pairs, "8, 8, 8, 0"],
    ["fewer pairs than none", "rope.dimension_sections", sections(4, -4, 4, 0), pairs, "4, -4, 4, 0"],
    ["more deep layers than layers", "n_deepstack_layers", u32(4e9), "at most block_count, 3", "4000000000"],
  ] as const) {
    it(name, async () => {
      const change = ({ metadata }: GgufFile) => Object.assign(metadata, { [`qwen3vl.${key}`]: value });
      const loading = load(change, { architecture: "qwen3vl" });
      await expect(loading).rejects.toMatchObject({ code: "engine/bad-model", expected, received });
    });
  }

  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    it(`a norm's epsilon of ${value}`, async () => {
      // No writer of ours writes such a number: its bytes replace those of another number.
      const file = describeTinyModel();
      file.metadata["qwen3.attention.layer_norm_rms_epsilon"] = { type: "float32", value: 0.123 };
      const path = join(models.folder, `epsilon-${value}.gguf`);
      await writeGguf(path, file);
      const bytes = readFileSync(path);
      const at = bytes.indexOf(Buffer.from(Float32Array.of(0.123).buffer));
      bytes.writeFloatLE(value, at);
      writeFileSync(path, bytes);
      await expect(models.load({}, { path })).rejects.toMatchObject({
        code: "engine/bad-model",
        expected: "a finite number of at least 0",
      });
    });
  }

  it("an assertion that is not known beforehand is an error too, and the process goes on", async () => {
    // Expert groups belong to models with experts.
    const broken = load(set("expert_group_count", u32(3)));
    await expect(broken).rejects.toMatchObject({
      code: "engine/load-failed",
      received: expect.stringContaining("GGML_ASSERT"),
    });
    const model = await load(() => {});
    expect((await model.createSequence().generate([1], { maxTokens: 2, stopTokens: [] })).tokenIds).toHaveLength(2);
  });
});

describe("weights that are not finite", () => {
  for (const [name, value] of [
    ["NaN", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
  ] as const) {
    for (const temperature of [0, 1]) {
      it(`${name}, temperature ${temperature}: generation is an error that says so`, async () => {
        const model = await load(({ tensors }) =>
          tensors.find((t) => t.name === "output_norm.weight")!.data.fill(value),
        );
        const running = model.createSequence().generate([1, 2, 3], { maxTokens: 4, temperature, stopTokens: [] });
        await expect(running).rejects.toMatchObject({ code: "engine/bad-logits", received: "NaN or infinity" });
      });
    }
  }

  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    it(`${value}: no score is given`, async () => {
      const spoil = ({ tensors }: GgufFile) =>
        void tensors.find((t) => t.name === "output_norm.weight")!.data.fill(value);
      const model = await load(spoil, {}, { lora: { rank: 2 } });
      const scoring = model.score([{ tokenIds: [1, 2] }, { tokenIds: [1, 2, 3] }]);
      await expect(scoring).rejects.toMatchObject({ code: "engine/bad-logits" });
    });
  }

  it("are also found when the prompt was evaluated before", async () => {
    const model = await load(({ tensors }) =>
      tensors.find((t) => t.name === "output_norm.weight")!.data.fill(Number.NaN),
    );
    const sequence = model.createSequence();
    await sequence.prefill([1, 2, 3]);
    const running = sequence.generate([], { maxTokens: 4, stopTokens: [] });
    await expect(running).rejects.toMatchObject({ code: "engine/bad-logits" });
  });
});

describe("writeGguf", () => {
  for (const [name, shape] of [
    ["overflows to 0", [2 ** 31, 2 ** 31, 4, 1]],
    ["overflows to the number of values", [2 ** 31, 2 ** 31, 4, 2 ** 31]],
  ] as const) {
    it(`refuses a shape whose product ${name}`, async () => {
      const path = join(models.folder, "overflow.gguf");
      const tensor = {
        name: "t",
        type: "f32" as const,
        shape: [...shape],
        data: new Float32Array(0),
      } satisfies GgufTensor;
      const writing = async () => writeGguf(path, { metadata: {}, tensors: [tensor] });
      await expect(writing()).rejects.toMatchObject({
        code: "engine/bad-option",
        subject: "t",
        expected: "at most 2^53 - 1",
      });
    });
  }
});

it("a file that only begins like a GGUF is refused", async () => {
  const path = join(models.folder, "short.gguf");
  writeFileSync(path, "GGUF\x03\x00\x00\x00");
  await expect(loadModel({ path })).rejects.toMatchObject({ code: "engine/truncated", subject: path });
});
