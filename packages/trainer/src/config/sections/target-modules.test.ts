import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { listTargets, targetModulesSchema } from "./target-modules.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const llama = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

describe("transformers' names of all linear layers are those of an adapter of all", () => {
  it.each([
    ["llama", llama],
    ["mistral3", llama],
    ["phi3", ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]],
    // out_proj stands for o_proj too.
    [
      "qwen35",
      [...llama.filter((name) => name !== "o_proj"), "out_proj", "in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b"],
    ],
    ["granitehybrid", ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "input_linear", "output_linear"]],
    ["qwen3moe", ["q_proj", "k_proj", "v_proj", "o_proj"]],
    ["lfm2", ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]],
  ] as const)("%s", async (architecture, names) => {
    const path = await models.write({ architecture });
    const adapt = async (modules: "all-linear" | string[]) => {
      const targets = listTargets(targetModulesSchema.parse(modules));
      const model = await models.load({}, { path, lora: { rank: 2, targets } });
      return model.listTensors().flatMap(({ name }) => (name.includes(".lora_") ? [name] : []));
    };
    const all = await adapt("all-linear");
    expect(await adapt([...names])).toEqual(all);
    for (const name of names) {
      const others = await adapt(names.filter((other) => other !== name));
      expect(others.length, name).toBeLessThan(all.length);
    }
  });
});

it("names of the feed-forward's layers are those of experts too, which an adapter of all leaves out", async () => {
  const path = await models.write({ architecture: "qwen3moe", layers: 1 });
  const adapt = async (modules: string[]) => {
    const targets = listTargets(targetModulesSchema.parse(modules));
    const { info } = await models.load({}, { path, lora: { rank: 2, targets } });
    return info.trainableParameterCount;
  };
  // Four experts of 32 x 48; the router's matrix is 32 x 4.
  expect(await adapt(["gate_proj"])).toBe(4 * 2 * (32 + 48));
  expect(await adapt(["gate_proj", "up_proj", "down_proj"])).toBe(3 * 4 * 2 * (32 + 48));
  expect(await adapt(["gate"])).toBe(2 * (32 + 4));
  expect(await adapt(["router"])).toBe(2 * (32 + 4));
});

it("llama.cpp's names stay, and a layer that two names mean counts once", () => {
  expect(targetModulesSchema.parse(["attn_q", "q_proj", "out_proj", "o_proj", "mine"])).toEqual([
    "attn_q",
    "attn_output",
    "shortconv.out_proj",
    "ssm_out",
    "mine",
  ]);
});
