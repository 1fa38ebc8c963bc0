import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readGguf } from "@cria/engine";
import { makeTinyProjector, TinyModels } from "@cria/engine/testing";
import { readBundledTemplate } from "@cria/tokenizer-delta/testing";
import { trainConfigSchema } from "@cria/trainer";
import { checkConfig, estimateMemory, type ModelShape, readModelShape } from "@cria/trainer/internal";
import { writeTinyRun } from "@cria/trainer/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Diagnosis } from "../doctor/examine.js";
import { examineConfig } from "../doctor/examine-config.js";
import { estimateStep, type TimeNeed } from "../doctor/measure-time.js";
import { doctorCommand } from "./doctor.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let stdout = "";
beforeEach(() => {
  stdout = "";
  vi.spyOn(console, "log").mockImplementation((text) => {
    stdout += `${text}\n`;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

async function examine(...rawArgs: string[]): Promise<Diagnosis & { code: number }> {
  await runCitty(doctorCommand, { rawArgs: [...rawArgs, "--json"] });
  return { ...(JSON.parse(stdout) as Diagnosis), code: Number(process.exitCode ?? 0) };
}

const find = (diagnosis: Diagnosis, name: string) => diagnosis.checks.find((check) => check.name === name)!;

describe("cria doctor", () => {
  it("without a config: runtime, libraries, processors, memory", async () => {
    const diagnosis = await examine();
    expect(diagnosis.code).toBe(0);
    expect(diagnosis.checks.map(({ name }) => name)).toEqual([
      "runtime",
      "libraries",
      "CPU kernel",
      "processors",
      "GPU",
      "images",
      "memory",
    ]);
    expect(find(diagnosis, "libraries").found).toMatch(/llama\.cpp .*ggml/);
    expect(find(diagnosis, "CPU kernel").found).toMatch(/^(portable|avx2|avx512), .* of .*portable; ggml's build \w+/);
    expect(find(diagnosis, "images").found).toMatch(
      /libcria-vision\.so, for llama\.cpp \d+\.\d+\.\d+; .* up to 536\.9 MB$/,
    );
    const parts = ["driver", "cudart", "cublas", "package", "backend", "device", "code", "kernels"];
    expect(diagnosis.cuda.map(({ name }) => name)).toEqual(parts);
    // Each missing part has a remedy.
    for (const { problem, remedy } of diagnosis.cuda) expect(remedy === null).toBe(problem === null);
  });

  it("images: warns of a library that does not load, with the reason", async () => {
    vi.stubEnv("CRIA_VISION", "/nowhere/libcria-vision.so");
    const images = find(await examine(), "images");
    vi.unstubAllEnvs();
    expect(images).toMatchObject({ verdict: "warning", remedy: expect.stringMatching(/^npm install @cria\/vision-/) });
    expect(images.found).toMatch(/nowhere.* No such file/);
  });

  it("--time measures this machine with the config's model, and says how long a step takes", async () => {
    const { folder } = await writeTinyRun(models, { rollout: { n: 3 }, trainer: { total_training_steps: 5 } });
    await runCitty(doctorCommand, { rawArgs: [join(folder, "config.yaml"), "--time", "--json"] });
    const { time } = JSON.parse(stdout) as { time: TimeNeed };
    const size = { prompts: 3, samples: 3, epochs: 1, promptLength: 48, responseLength: 8 };
    expect(time).toMatchObject({ size, conversations: 9, steps: 5 });
    for (const speed of Object.values(time.speeds)) expect(speed).toBeGreaterThan(0);
    expect(time.step.longest).toBeCloseTo(estimateStep(time.speeds, size), 9);
    expect(time.step.half).toBeLessThan(time.step.longest);
    // 3 prompts of 48 tokens, 9 responses of 8, 9 conversations of 56.
    expect(estimateStep({ prompts: 144, sampling: 36, update: 252 }, size)).toBe(1 + 2 + 2);
    expect(estimateStep({ prompts: 144, sampling: 36, update: 252 }, { ...size, epochs: 2 })).toBe(1 + 2 + 4);
  });

  it("--time without an adapter's file measures with a new one, and names a missing config", async () => {
    const { folder } = await writeTinyRun(models, { model: { lora_adapter_path: "none.gguf", lora_rank: 0 } });
    await runCitty(doctorCommand, { rawArgs: [join(folder, "config.yaml"), "--time", "--json"] });
    expect((JSON.parse(stdout) as { time: TimeNeed }).time.step.longest).toBeGreaterThan(0);
    process.exitCode = undefined;
    const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    await runCitty(doctorCommand, { rawArgs: ["--time", "--json"] });
    expect([process.exitCode, written.mock.calls.length]).toEqual([2, 1]);
  });

  it("a config that fits: every part with its bytes", async () => {
    const { folder } = await writeTinyRun(models);
    const diagnosis = await examine(join(folder, "config.yaml"));
    expect(diagnosis.code).toBe(0);
    expect(find(diagnosis, "this config").found).toMatch(/^fits: about [\d.]+ MB of [\d.]+ GB/);
    const sum = diagnosis.memory!.items.reduce((total, item) => total + item.bytes, 0);
    expect(diagnosis.memory!.needed).toBe(sum);
    expect(diagnosis.model).toMatchObject({ architecture: "qwen3", layers: 2, embedding: 32, vocabulary: 288 });
  });

  it("a policy that sees images: its projector, and how much of images stays in memory", async () => {
    const { folder } = await writeTinyRun(models);
    writeFileSync(join(folder, "mmproj.gguf"), new Uint8Array(1234));
    const config = join(folder, "config.yaml");
    const { memory } = await examine(config, `actor_rollout_ref.model.mmproj=${join(folder, "mmproj.gguf")}`);
    const sizes = Object.fromEntries(memory!.items.map(({ name, bytes }) => [name, bytes]));
    expect(sizes).toMatchObject({ projector: 1234, images: 512 * 2 ** 20 });
    stdout = "";
    const blind = (await examine(config)).memory!;
    expect(memory!.needed - blind.needed).toBe(1234 + 512 * 2 ** 20);
    expect(blind.items.map(({ name }) => name)).not.toContain("images");
    // With a real projector: also the memory of its largest picture, which fewer tokens reduce.
    const mmproj = join(folder, "real.gguf");
    await makeTinyProjector(mmproj, { type: "qwen2.5vl_merger" });
    const encoding = async (...overrides: string[]) => {
      stdout = "";
      const model = "actor_rollout_ref.model";
      const { memory } = await examine(config, `${model}.mmproj=${mmproj}`, ...overrides);
      return memory!.items.find(({ name }) => name === "encoding an image")!;
    };
    const [largest, limited] = [await encoding(), await encoding("actor_rollout_ref.model.image_max_tokens=512")];
    expect(largest.key).toBe("actor_rollout_ref.model.image_max_tokens");
    expect(largest.bytes / limited.bytes).toBeCloseTo(8);
  });

  it.skipIf(existsSync("/dev/nvidia0"))(
    "a config that asks for a GPU which is not there (skipped with a GPU)",
    async () => {
      const { folder } = await writeTinyRun(models);
      await runCitty(doctorCommand, { rawArgs: [join(folder, "config.yaml")] });
      expect(stdout).toMatch(/GPU +no NVIDIA driver that can be used; the CPU computes/);
      expect(stdout).not.toMatch(/what a GPU needs/);
      await runCitty(doctorCommand, { rawArgs: [join(folder, "config.yaml"), "trainer.device=cuda"] });
      expect(stdout).toMatch(/what a GPU needs by CUDA\n {2}driver/);
      stdout = "";
      const diagnosis = await examine(join(folder, "config.yaml"), "trainer.device=cuda");
      expect(diagnosis.code).toBe(1);
      expect(find(diagnosis, "GPU")).toMatchObject({
        verdict: "problem",
        found: expect.stringMatching(/^CUDA cannot be used: driver: /),
        remedy: expect.stringMatching(/install an NVIDIA driver.*or set trainer\.device to cpu/),
      });
    },
  );

  it("warns of full training at the learning rate of an adapter; counts the critic with gae alone", async () => {
    const { folder } = await writeTinyRun(models);
    const check = async (...overrides: string[]) => {
      stdout = "";
      const { checks } = await examine(join(folder, "config.yaml"), ...overrides);
      return checks.filter(({ name }) => name === "learning rate");
    };
    const full = ["actor_rollout_ref.model.lora_rank=0", "actor_rollout_ref.model.lora_alpha=null"];
    expect(await check()).toEqual([]);
    expect(await check(...full, "actor_rollout_ref.actor.optim.lr=1e-5")).toEqual([]);
    expect(await check(...full)).toEqual([
      expect.objectContaining({
        verdict: "warning",
        found: "trains all weights of the policy (lora_rank 0) at a learning rate of 0.01",
        remedy: expect.stringMatching(/^actor_rollout_ref\.actor\.optim\.lr: set it to 1e-5 or less/),
      }),
    ]);
    const rates = [...full, "actor_rollout_ref.actor.optim.lr=1e-6", "algorithm.adv_estimator=gae"];
    expect((await check(...rates)).map(({ found }) => found)).toEqual([expect.stringMatching(/of the critic/)]);
    expect(await check(...rates, "critic.model.lora_rank=4")).toEqual([]);
    expect(await check(...rates, "critic.optim.lr=1e-5")).toEqual([]);
  });

  it("names a clip without effect if a step has one update", async () => {
    const { folder } = await writeTinyRun(models);
    const check = async (...overrides: string[]) => {
      stdout = "";
      const { checks } = await examine(join(folder, "config.yaml"), ...overrides);
      return checks.filter(({ name }) => name === "settings").map(({ key }) => key);
    };
    const clip = "actor_rollout_ref.actor.clip_ratio";
    expect(await check()).toEqual([]);
    expect(await check(`${clip}=0.1`)).toEqual([clip]);
    expect(await check(`${clip}=0.1`, "actor_rollout_ref.actor.ppo_epochs=2")).toEqual([]);
  });

  it("refuses settings that a training refuses: tools and interactions of one turn, algorithms that do not exist", async () => {
    const { folder } = await writeTinyRun(models);
    writeFileSync(join(folder, "mine.mjs"), "export const mine = Object.assign(() => null, { comparesGroup: true });");
    const check = async (...overrides: string[]) => {
      stdout = "";
      process.exitCode = undefined;
      const { checks, code } = await examine(join(folder, "config.yaml"), ...overrides);
      const refused = checks.filter(({ name, verdict }) => name === "settings" && verdict === "problem");
      return { refused: refused.map(({ key }) => key), code };
    };
    const turns = "actor_rollout_ref.rollout.multi_turn";
    for (const key of [`${turns}.tool_config_path`, `${turns}.interaction_config_path`]) {
      const given = [`${key}=${join(folder, "config.yaml")}`];
      expect(await check(...given, `${turns}.enable=false`)).toEqual({ refused: [key], code: 1 });
      expect(await check(...given, `${turns}.enable=true`)).toEqual({ refused: [], code: 0 });
    }
    const estimator = "algorithm.adv_estimator";
    expect(await check(`${estimator}=${join(folder, "mine.mjs")}#mine`)).toEqual({ refused: [], code: 0 });
    expect((await check(`${estimator}=${join(folder, "none.mjs")}#mine`)).refused).toHaveLength(1);
    expect((await check(`${estimator}=grop`)).refused).toHaveLength(1);
  });

  it("names an adapter's targets that the model lacks, and lists its layers", async () => {
    const { folder } = await writeTinyRun(models);
    const targets = "actor_rollout_ref.model.target_modules";
    const check = async (...overrides: string[]) => {
      stdout = "";
      const { checks } = await examine(join(folder, "config.yaml"), ...overrides);
      return checks.filter(({ key }) => key?.endsWith("target_modules"));
    };
    expect(await check(`${targets}=[q_proj,v_proj]`)).toEqual([]);
    // One layer of a name that stands for several is enough.
    expect(await check(`${targets}=[q_proj,out_proj]`)).toEqual([]);
    expect(await check(`${targets}=[q_proj,attn_qkv,in_proj]`)).toEqual([
      expect.objectContaining({
        verdict: "warning",
        key: targets,
        found: expect.stringMatching(/: attn_qkv, shortconv\.in_proj, ssm_in$/),
        remedy: expect.stringMatching(/attn_k, attn_output, attn_q, attn_v, ffn_down, ffn_gate, ffn_up/),
      }),
    ]);
    const own = "critic.model.target_modules";
    const critic = await check("algorithm.adv_estimator=gae", `${own}=[k_proj,attn_qkv]`);
    expect(critic.map(({ key }) => key)).toEqual([own]);
    expect(await check(`${own}=[k_proj,attn_qkv]`)).toEqual([]);
  });

  it("a config that does not fit: names the largest part and the key to lower, and sets the exit code", async () => {
    const { folder } = await writeTinyRun(models);
    const diagnosis = await examine(
      join(folder, "config.yaml"),
      "actor_rollout_ref.rollout.max_num_seqs=256",
      "actor_rollout_ref.rollout.max_model_len=10000000",
    );
    expect(diagnosis.code).toBe(1);
    expect(find(diagnosis, "this config")).toMatchObject({
      verdict: "problem",
      remedy: expect.stringMatching(/KV cache \(.* GB\): lower actor_rollout_ref\.rollout\.max_num_seqs/),
    });
  });

  it("lengths beyond the training context of a model: policy, critic, reward model", async () => {
    const { folder } = await writeTinyRun(models);
    const config = join(folder, "config.yaml");
    const check = async (...overrides: string[]) => {
      stdout = "";
      const { checks } = await examine(config, ...overrides);
      return checks.filter(({ name }) => name === "context");
    };
    const [own] = await check();
    expect(own).toMatchObject({ verdict: "ok", found: expect.stringMatching(/trained with \d+$/) });
    const context = Number(/\d+$/.exec(own!.found)![0]);
    const key = "actor_rollout_ref.rollout.max_model_len";
    expect(await check(`${key}=${context}`)).toMatchObject([{ verdict: "ok" }]);
    expect(await check(`${key}=${context + 1}`)).toMatchObject([
      { verdict: "warning", key, remedy: `lower ${key}, so that they are ${context} at most` },
    ]);
    const long = await check("actor_rollout_ref.rollout.response_length=9000", `${key}=null`);
    expect(long[0]!.found).toMatch(/prompt_length \d+ \+ response_length 9000/);
    const path = await models.write({});
    const judged = [`reward_model.enable=true`, `reward_model.model={path: ${path}, max_model_len: ${context + 1}}`];
    expect((await check(...judged)).map(({ key }) => key)).toEqual([undefined, "reward_model.model[0].max_model_len"]);
    const critic = [`algorithm.adv_estimator=gae`, `critic.model.path=${path}`, `${key}=${context + 1}`];
    expect((await check(...critic)).map(({ found }) => /the (model|critic) was/.exec(found)?.[1])).toEqual([
      "model",
      "critic",
    ]);
  });

  it("a format of calls that is not the one which the model's chat template prints", async () => {
    const { folder } = await writeTinyRun(models);
    writeFileSync(join(folder, "tools.yaml"), "tools: []\n");
    const chatTemplate = readBundledTemplate("meta-llama-Llama-3.2-3B-Instruct");
    const llama = await models.write({ chatTemplate, controlTokens: ["<|start_header_id|>", "<|eot_id|>"] });
    const keys = async (...overrides: string[]) => {
      stdout = "";
      const { checks } = await examine(
        join(folder, "config.yaml"),
        `actor_rollout_ref.model.path=${llama}`,
        ...overrides,
      );
      return checks.filter(({ key }) => key?.endsWith("multi_turn.format")).map(({ remedy }) => remedy);
    };
    const multiTurn = "actor_rollout_ref.rollout.multi_turn";
    const tools = `${multiTurn}.tool_config_path=${join(folder, "tools.yaml")}`;
    // The key's default is hermes.
    expect(await keys(tools)).toEqual([expect.stringMatching(/ llama3_json$/)]);
    expect(await keys(tools, `${multiTurn}.format=llama3_json`)).toEqual([]);
    expect(await keys()).toEqual([]);
  });

  it("a model that is missing, or cannot be trained as asked", async () => {
    const { folder } = await writeTinyRun(models);
    const config = join(folder, "config.yaml");
    const missing = await examine(config, "actor_rollout_ref.model.path=none.gguf");
    expect(find(missing, "model")).toMatchObject({ verdict: "problem", found: expect.stringMatching(/ENOENT/) });
    stdout = "";
    const q8 = await models.write({ type: "q8_0", embedding: 64, feedForward: 64 });
    const full = await examine(config, `actor_rollout_ref.model.path=${q8}`, "actor_rollout_ref.model.lora_rank=0");
    expect(find(full, "model").remedy).toMatch(/lora_rank above 0/);
    const experts = { count: 4, used: 2 };
    for (const architecture of ["llama", "granitehybrid"] as const) {
      stdout = "";
      const mixture = await models.write({ architecture, experts });
      const { code, ...diagnosis } = await examine(config, `actor_rollout_ref.model.path=${mixture}`);
      expect(code).toBe(1);
      expect(find(diagnosis, "model")).toMatchObject({ verdict: "problem", found: expect.stringMatching(/experts/) });
    }
  });
});

describe("the estimate", () => {
  it("counts as the engine counts: parameters, adapter, vocabulary", async () => {
    const path = await models.write({ layers: 3 });
    const engine = await models.load({}, { path, lora: { rank: 4 } });
    const shape = readModelShape(await readGguf(path));
    const { info } = engine;
    expect(shape).toMatchObject({
      architecture: info.architecture,
      layers: info.layerCount,
      embedding: info.embeddingSize,
      heads: info.headCount,
      kvHeads: info.kvHeadCount,
      headSize: info.headSize,
      vocabulary: info.vocabSize,
      contextLength: info.trainingContextSize,
      parameters: info.parameterCount,
    });
    // One of the three layers has attention, two have a convolution.
    const hybrid = readModelShape(await readGguf(await models.write({ architecture: "lfm2", layers: 3 })));
    expect(hybrid).toMatchObject({ layers: 3, kvLayers: 1, kvHeads: 2 });
    expect(hybrid.linear.map(({ name }) => name)).toContain("shortconv.in_proj");
    // A state has 16 x 16 numbers for each of four heads.
    const nets = readModelShape(await readGguf(await models.write({ architecture: "qwen35", layers: 3 })));
    expect(nets).toMatchObject({
      kvLayers: 1,
      states: { channels: 128, outputs: 64, state: 1024 },
      gatesQueries: true,
    });
    expect(nets.linear.map(({ name }) => name)).toContain("ssm_beta");
    // A token chooses two of four experts.
    for (const architecture of ["qwen3moe", "gpt-oss"] as const) {
      const mixed = readModelShape(await readGguf(await models.write({ architecture, layers: 1 })));
      expect(mixed).toMatchObject({ experts: { used: 2, feedForward: 48 } });
      expect(mixed.linear.at(-1)).toEqual({ name: "ffn_down_exps", inputs: 48, outputs: 32, experts: 4 });
    }
    const fused = readModelShape(await readGguf(await models.write({ architecture: "phi3" })));
    expect(fused).toMatchObject({ kvLayers: 2, kvHeads: 2, headSize: 16, feedForward: 48 });
    expect(fused.linear.slice(0, 3)).toEqual([
      { name: "attn_qkv", inputs: 64, outputs: 128 },
      { name: "attn_output", inputs: 64, outputs: 64 },
      { name: "ffn_up", inputs: 64, outputs: 96 },
    ]);
    const estimateItems = (trainer: object, lora_roles: string[] | null = null) => {
      const actor_rollout_ref = { model: { path, lora_rank: 4, lora_roles } };
      const config = checkConfig(trainConfigSchema, { actor_rollout_ref, data: { train_files: "x" }, trainer }, "test");
      return new Map(estimateMemory(shape, config).map(({ name, bytes }) => [name, bytes]));
    };
    const items = estimateItems({});
    expect(items.get("adapter, gradients, moments")).toBe(20 * info.trainableParameterCount);
    expect(items.has("kept versions")).toBe(false);
    // Three roles: a version of each, and values and two moments of the two that wait.
    expect(estimateItems({}, ["a", "b", "c"]).get("adapters of roles")).toBe(
      (3 + 2 * 3) * 4 * info.trainableParameterCount,
    );
    const together = estimateItems({ v1: { trainer_mode: "colocate_async" } }, ["a", "b"]);
    expect(together.get("kept versions")).toBe(2 * 2 * 4 * info.trainableParameterCount);
    // With a lag of 1 two versions of the adapter are kept beside the one that is trained.
    const ahead = estimateItems({ v1: { trainer_mode: "colocate_async" } });
    expect(ahead.get("kept versions")).toBe(8 * info.trainableParameterCount);
  });

  it("counts copies of all weights for a lag of full training, and names the largest that fits", async () => {
    const { config, folder } = await writeTinyRun(models, {
      model: { lora_rank: 0 },
      trainer: { v1: { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 3 } } },
    });
    const { memory, model } = await examineConfig(config, folder, 2 ** 40);
    const version = 4 * model!.parameters;
    expect(memory!.items.find(({ name }) => name === "kept versions")!.bytes).toBe(4 * version);
    const { checks } = await examineConfig(config, folder, memory!.needed - 1.5 * version);
    const fit = checks.find(({ name }) => name === "this config")!;
    expect(fit).toMatchObject({ verdict: "problem", remedy: expect.stringMatching(/num_warmup_batches\) is 1$/) });
  });

  it("counts the models that teach, and the policy's own model once", async () => {
    const path = await models.write({ layers: 2 });
    const large = await models.write({ layers: 4, embedding: 64 });
    const measure = async (teacher_models: object, guided = {}, distillation_loss = {}) => {
      const distillation = { enabled: true, teacher_models, guided, distillation_loss };
      const raw = { actor_rollout_ref: { model: { path } }, data: { train_files: "x" }, distillation };
      const { memory } = await examineConfig(checkConfig(trainConfigSchema, raw, "test"), models.folder, 2 ** 40);
      return new Map(memory!.items.map(({ name, bytes }) => [name, bytes]));
    };
    const taught = await measure({ large: { model_path: large }, before: { key: "x" } });
    const shape = readModelShape(await readGguf(large));
    expect(taught.get("teacher large")).toBeGreaterThan(shape.fileBytes);
    expect(taught.has("teacher before")).toBe(false);
    expect((await measure({ lost: { model_path: "/nowhere.gguf" } })).has("teacher lost")).toBe(false);
    // A teacher that samples turns keeps the tokens of as many conversations as the policy.
    const guided = await measure({ large: { model_path: large } }, { share: 0.5 });
    const perLayer = (bytes: number, { kvLayers, kvHeads, headSize }: ModelShape) =>
      bytes / (kvLayers * kvHeads * headSize);
    const own = readModelShape(await readGguf(path));
    expect(perLayer(guided.get("conversations of teacher large")!, shape)).toBeGreaterThanOrEqual(
      perLayer(guided.get("KV cache")!, own),
    );
    expect(taught.has("conversations of teacher large")).toBe(false);
    // Ids and logprobs of its likeliest tokens.
    const listed = (topk: number, loss_mode = "forward_kl_topk") =>
      measure({ large: { model_path: large } }, {}, { loss_mode, topk }).then((items) =>
        items.get("teacher's likeliest tokens"),
      );
    expect(await listed(64)).toBe(2 * (await listed(32))!);
    expect(await listed(64, "k3")).toBeUndefined();
  });

  const estimate = (shape: ModelShape, tokens: number, { rank = 4, microBatch = null as number | null } = {}) => {
    const rollout = { max_num_seqs: 1, max_model_len: tokens };
    const actor = { ppo_max_token_len: microBatch };
    const settings = { actor_rollout_ref: { model: { path: "x", lora_rank: rank }, rollout, actor } };
    return estimateMemory(shape, checkConfig(trainConfigSchema, { ...settings, data: { train_files: "x" } }, "test"));
  };

  it("counts a conversation that is longer than a micro-batch, which is not cut", async () => {
    const shape = readModelShape(await readGguf(await models.write({ layers: 3 })));
    const inputs = (tokens: number, microBatch: number | null) =>
      estimate(shape, tokens, { microBatch }).find(({ name }) => name === "layer inputs")!.bytes /
      (4 * 7 * shape.embedding);
    expect([inputs(16384, 512), inputs(512, 2048), inputs(16384, null)]).toEqual([16384, 2048, 16384]);
  });

  it("is within 15 % of the measured memory of a LoRA step, up to 16,384 tokens", () => {
    const file = join(import.meta.dirname, "../../../../scripts/nightly/train-memory.json");
    const measured = JSON.parse(readFileSync(file, "utf8")) as {
      rank: number;
      shapes: Record<string, ModelShape>;
      rows: { model: string; tokens: number; measured: number }[];
    };
    const small = measured.rows.filter(({ model }) => model.startsWith("smollm2"));
    expect(small.map(({ tokens }) => tokens)).toEqual([1024, 4096, 16384]);
    for (const { model, tokens, measured: megabytes } of measured.rows) {
      const items = estimate(measured.shapes[model]!, tokens, { rank: measured.rank });
      const ratio = items.reduce((sum, { bytes }) => sum + bytes, 0) / (1e6 * megabytes);
      expect(Math.abs(ratio - 1), `${model}, ${tokens} tokens`).toBeLessThan(0.15);
    }
  });
});
