import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type AdvantageEstimator,
  aggregations,
  composePolicyLoss,
  klEstimates,
  losses,
  type PolicyLossOptions,
  policyLosses,
} from "@cria/algorithms";
import { ConfigError, type LossInputs } from "@cria/core";
import { interaction, tool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { checkConfig, listLeaves } from "../config/check-config.js";
import { importLoss } from "../config/import/loss.js";
import { loadConfig } from "../config/load-config.js";
import { readKey } from "../config/raw-config.js";
import { teacherEntry } from "../config/sections/distillation.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import { defineTask } from "../task/task.js";
import { fromConfig, makeConfig, toConfig } from "./make-config.js";
import { sharedKeys } from "./shared-options.js";
import type { TrainOptions } from "./train-options.js";

const folder = mkdtempSync(join(tmpdir(), "cria-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

const task = defineTask({ rows: "rows.jsonl", reward: "./reward.mjs#score", tools: "tools.yaml", maxTurns: 3 });
const given: TrainOptions = { model: "m.gguf", task };
const read = (options: TrainOptions): TrainConfig => checkConfig(trainConfigSchema, toConfig(options), "test");
/** Returns the values of dotted keys that an option sets. */
const keysOf = (options: TrainOptions, keys: readonly string[]) => {
  const config = toConfig({ ...given, ...options });
  return Object.fromEntries(keys.map((key) => [key, readKey(config, key)]));
};

describe("options", () => {
  const model = "actor_rollout_ref.model";
  const actor = "actor_rollout_ref.actor";
  const rollout = "actor_rollout_ref.rollout";
  it.each<[string, TrainOptions, Record<string, unknown>]>([
    [
      "nothing",
      {},
      { [`${model}.lora_rank`]: 16, [`${actor}.ppo_mini_batch_size`]: 16, "trainer.resume_mode": "disable" },
    ],
    ["batchSize", { batchSize: 4 }, { "data.train_batch_size": 4, [`${actor}.ppo_mini_batch_size`]: 4 }],
    [
      "a batch size of the config",
      { config: { data: { train_batch_size: 6 } } },
      { "data.train_batch_size": 6, [`${actor}.ppo_mini_batch_size`]: 6 },
    ],
    [
      "batchSize beside the mini-batches of the config",
      { batchSize: 4, config: { actor_rollout_ref: { actor: { ppo_mini_batch_size: 2 } } } },
      { "data.train_batch_size": 4, [`${actor}.ppo_mini_batch_size`]: 2 },
    ],
    ["seed", { seed: 7 }, { [`${rollout}.seed`]: 7, "data.seed": 7 }],
    ["n", { n: 3, temperature: 0.5 }, { [`${rollout}.n`]: 3, [`${rollout}.temperature`]: 0.5 }],
    ["learningRate", { learningRate: 1 }, { [`${actor}.optim.lr`]: 1 }],
    ["steps", { steps: 3, epochs: 2 }, { "trainer.total_training_steps": 3, "trainer.total_epochs": 2 }],
    [
      "lag",
      { lag: 2 },
      { "trainer.v1.trainer_mode": "colocate_async", "trainer.v1.colocate_async.num_warmup_batches": 2 },
    ],
    [
      "lag: 0",
      { lag: 0, config: { trainer: { v1: { trainer_mode: "colocate_async" } } } },
      { "trainer.v1.trainer_mode": "sync" },
    ],
    ["journal", { journal: true }, { "trainer.journal": true }],
    ["sampler", { sampler: "difficulty" }, { "data.sampler.class_name": "difficulty" }],
    [
      "replay",
      { replay: { share: 0.5, size: 8, maxAge: 2, sampling: "newest", samplingKwargs: { a: 1 } } },
      {
        "algorithm.replay": { share: 0.5, size: 8, max_age: 2, sampling: "newest", sampling_kwargs: { a: 1 } },
      },
    ],
    ["lora: null", { lora: null }, { [`${model}.lora_rank`]: 0, [`${model}.lora_adapter_path`]: null }],
    [
      "lora: null beside a config's adapter",
      { lora: null, config: { actor_rollout_ref: { model: { lora_adapter_path: "a.gguf" } } } },
      { [`${model}.lora_rank`]: 0, [`${model}.lora_adapter_path`]: null },
    ],
    [
      "lora",
      { lora: { rank: 4, alpha: 8, targets: ["q_proj"] } },
      { [`${model}.lora_rank`]: 4, [`${model}.lora_alpha`]: 8, [`${model}.target_modules`]: ["q_proj"] },
    ],
    [
      "lora.roles",
      { lora: { roles: ["x", "o"] } },
      { [`${model}.lora_rank`]: 16, [`${model}.lora_roles`]: ["x", "o"] },
    ],
    [
      "lora.path",
      { lora: { path: "a.gguf" } },
      { [`${model}.lora_adapter_path`]: resolve("a.gguf"), [`${model}.lora_rank`]: undefined },
    ],
    [
      "validation",
      { validation: { rows: ["held-out.jsonl"], every: 5, before: false, n: 2, temperature: 0.7 } },
      {
        "data.val_files": [resolve("held-out.jsonl")],
        "trainer.test_freq": 5,
        "trainer.val_before_train": false,
        [`${rollout}.val_kwargs.n`]: 2,
        [`${rollout}.val_kwargs.temperature`]: 0.7,
        [`${rollout}.val_kwargs.do_sample`]: true,
      },
    ],
    [
      "greedy validation",
      { validation: { rows: "hf:a/b/c/d", temperature: 0 } },
      { "data.val_files": ["hf:a/b/c/d"], [`${rollout}.val_kwargs.do_sample`]: false },
    ],
    ["resume: true", { resume: true }, { "trainer.resume_mode": "auto" }],
    [
      "resume: a path",
      { resume: "runs/x" },
      { "trainer.resume_mode": "resume_path", "trainer.resume_from_path": resolve("runs/x") },
    ],
    [
      "save",
      { save: { every: 3, minutes: 1, keep: 2 } },
      { "trainer.save_freq": 3, "trainer.save_minutes": 1, "trainer.max_actor_ckpt_to_keep": 2 },
    ],
    ["trackers", { trackers: ["tensorboard"] }, { "trainer.logger": ["console", "file", "tensorboard"] }],
    ["no trackers", { trackers: [] }, { "trainer.logger": ["console", "file"] }],
    [
      "where and how",
      { name: "x", folder: "out", threads: 2, device: "cpu" },
      {
        "trainer.experiment_name": "x",
        "trainer.default_local_dir": resolve("out"),
        "trainer.threads": 2,
        "trainer.device": "cpu",
      },
    ],
    ["advantages", { advantages: "rloo" }, { "algorithm.adv_estimator": "rloo" }],
    [
      "the task",
      {},
      {
        "data.train_files": [resolve("rows.jsonl")],
        "custom_reward_function.path": resolve("reward.mjs"),
        "custom_reward_function.name": "score",
        [`${rollout}.multi_turn.tool_config_path`]: resolve("tools.yaml"),
        [`${rollout}.multi_turn.max_assistant_turns`]: 3,
        [`${rollout}.multi_turn.format`]: undefined,
      },
    ],
  ])("%s", (_, options, keys) => {
    expect(keysOf(options, Object.keys(keys))).toEqual(keys);
    // The keys form a valid config.
    expect(() => read({ ...given, ...options })).not.toThrow();
  });

  it("go before the config, and leave it as it is", () => {
    const config = { data: { seed: 1, shuffle: false }, trainer: { total_training_steps: 9 } };
    const copy = structuredClone(config);
    expect(toConfig({ ...given, seed: 2, config })).toMatchObject({
      data: { seed: 2, shuffle: false },
      trainer: { total_training_steps: 9 },
    });
    expect(config).toEqual(copy);
  });

  it("that are wrong are named as keys", () => {
    const make = () => makeConfig({ ...given, n: 0, config: { data: { sheffle: true } } as never });
    expect(make).toThrow(
      expect.objectContaining({
        code: "config/unknown-key",
        subject: "train: config.data.sheffle",
        expected: expect.stringContaining("config.data.shuffle"),
      }),
    );
    expect(() => makeConfig({ model: "m.gguf" })).toThrow(expect.objectContaining({ subject: "train: task" }));
  });
});

describe("options that a config has too", () => {
  it("set a key each", () => {
    const keys = sharedKeys.map(([, key]) => key);
    expect(keys.length).toBeGreaterThan(50);
    expect(new Set(keys).size).toBe(keys.length);
    const known = listLeaves(trainConfigSchema);
    const teachers = "distillation.teacher_models";
    expect(keys.filter((key) => !known.includes(key) && !key.startsWith(`${teachers}.teacher_model.`))).toEqual([]);
    expect(keys.filter((key) => key.startsWith(teachers)).sort()).toEqual(
      Object.keys(teacherEntry.shape)
        .flatMap((name) => (name === "key" ? [] : `${teachers}.teacher_model.${name}`))
        .sort(),
    );
  });
});

describe("losses", () => {
  const custom = policyLosses.get("gspo");
  const terms = { aggregation: "seq-mean-token-sum-norm", scaleFactor: 32, entropy: 0.01, kl: { coefficient: 0.02 } };
  const cases: [string, PolicyLossOptions][] = [
    ["ppo", losses.ppo()],
    ["ppo", losses.ppo({ clip: 0.1, dualClip: 5 })],
    ["ppo", losses.ppo({ clip: { low: 0.1, high: 0.3 }, ...terms })],
    ["gspo", losses.gspo({ clip: { low: 3e-4, high: 4e-4 } })],
    ["sapo", losses.sapo({ tauPos: 1.1, tauNeg: 1.3 })],
    ["cispo", losses.cispo({ clip: { low: 10, high: 0.2 } })],
    ["gpg", losses.gpg({ kl: { coefficient: 0.1, type: "k1" } })],
    ["geo_mean", losses.geoMean({ clip: 0.4 })],
    ["clip_cov", losses.clipCov({ ratio: 1e-3, lower: 2, upper: 6, clip: 1 })],
    ["kl_cov", losses.klCov({ ratio: 1e-3, coefficient: 2 })],
    ["dppo_tv", losses.dppo()],
    ["dppo_kl", losses.dppo({ divergence: "kl", clip: 0.1 })],
    ["dro", losses.dro({ beta: 0.05 })],
    ["custom", losses.custom(custom, { clip: 0.1, ...terms })],
    ["ppo", losses.ppo({ observations: 0.1, demonstrations: 0.3, terms: { mine: { term: "mine", coefficient: 2 } } })],
  ];

  it("there is one for every registered loss", () => {
    const made = new Set(cases.map(([, { lossMode }]) => policyLosses.resolve(lossMode)));
    expect(made).toEqual(new Set(policyLosses.names().map((name) => policyLosses.get(name))));
    expect(new Set(cases.map(([name]) => name)).size).toBe(Object.keys(losses).length + 1);
  });

  it.each(cases)("%s equals the config with the same keys", (_, loss) => {
    const { config, registries } = makeConfig({ ...given, loss });
    const made = importLoss(config);
    expect({ ...made, lossMode: registries.policyLosses.get(String(made.lossMode)) }).toEqual({
      ...loss,
      lossMode: policyLosses.resolve(loss.lossMode),
    });
    if (typeof loss.lossMode === "string") expect(importLoss(read({ ...given, loss }))).toEqual(made);
    registries.lossTerms.register("mine", { evaluate: ({ logprobs }) => ({ losses: logprobs, gradients: logprobs }) });
    expect(() => composePolicyLoss(made, registries)).not.toThrow();
  });

  it("override all of the config's settings of a loss", () => {
    const actor = {
      entropy_coeff: 0.5,
      use_kl_loss: true,
      loss_scale_factor: 7,
      clip_ratio_c: 9,
      policy_loss: { loss_mode: "gspo", clip_cov_lb: 3 },
      demonstration_coeff: 0.5,
      loss_terms: { mine: { term: "mine" } },
    };
    const made = makeConfig({ ...given, loss: losses.ppo(), config: { actor_rollout_ref: { actor } } });
    expect(importLoss(made.config)).toEqual(losses.ppo());
  });

  it("functions of one's own for aggregation and KL are the run's alone", () => {
    const loss = losses.ppo({
      aggregation: aggregations.get("token-mean"),
      kl: { coefficient: 1, type: klEstimates.get("k1") },
    });
    const { config, registries } = makeConfig({ ...given, loss });
    const { loss_agg_mode, kl_loss_type } = config.actor_rollout_ref.actor;
    expect(registries.aggregations.get(loss_agg_mode)).toBe(loss.lossAggMode);
    expect(registries.klEstimates.get(kl_loss_type)).toBe(loss.kl!.type);
    expect(() => makeConfig(given).registries.aggregations.get(loss_agg_mode)).toThrow(ConfigError);
    expect(() => toConfig({ ...given, loss })).toThrow(
      expect.objectContaining({ code: "config/in-memory", subject: "loss.lossAggMode, loss.kl.type" }),
    );
  });

  it("terms of one's own are the run's alone, each under its name", () => {
    const [one, two] = [1, 2].map((factor) => ({
      evaluate: ({ logprobs }: LossInputs) => ({
        losses: logprobs.map((x) => factor * x),
        gradients: logprobs.map(() => factor),
      }),
    }));
    const terms = { one: { term: one!, coefficient: 1 }, two: { term: two!, coefficient: 2 } };
    const loss = losses.ppo({ terms });
    const { config, registries } = makeConfig({ ...given, loss });
    const { loss_terms } = config.actor_rollout_ref.actor;
    expect(registries.lossTerms.get(loss_terms.one!.term)).toBe(one);
    expect(registries.lossTerms.get(loss_terms.two!.term)).toBe(two);
    expect(loss_terms.two!.coefficient).toBe(2);
    expect(() => toConfig({ ...given, loss })).toThrow(
      expect.objectContaining({ code: "config/in-memory", subject: "loss.terms.one, loss.terms.two" }),
    );
  });

  it("demonstrations and weights of rows are keys of the config", () => {
    const { config } = makeConfig({
      ...given,
      loss: losses.ppo({ demonstrations: 0.1 }),
      demonstrations: { files: ["shown.jsonl"], size: 3, keep: "reward == 1" },
      lossWeights: { key: "kind", rows: { chat: { policy: 0 } } },
    });
    expect(config.data.demonstrations).toMatchObject({ files: [resolve("shown.jsonl")], size: 3, keep: "reward == 1" });
    expect(config.actor_rollout_ref.actor).toMatchObject({
      demonstration_coeff: 0.1,
      loss_weights: { key: "kind", rows: { chat: { policy: 0 } } },
    });
    for (const wrong of [{ files: "shown.jsonl" }, { files: [1] }, { files: [], sise: 3 }])
      expect(() => makeConfig({ ...given, demonstrations: wrong as never })).toThrow(ConfigError);
    expect(() => makeConfig({ ...given, lossWeights: { rows: { chat: { policy: -1 } } } })).toThrow(
      expect.objectContaining({ subject: "train: lossWeights.rows.chat.policy" }),
    );
  });

  it("a correction of the sampler is said in the config", () => {
    const currentCorrection = { rolloutIs: "token" } as never;
    expect(() => makeConfig({ ...given, loss: { ...losses.ppo(), currentCorrection } })).toThrow(
      expect.objectContaining({
        code: "config/bad-value",
        subject: "train: loss.currentCorrection",
        remedy: expect.stringContaining("rollout_correction"),
      }),
    );
  });
});

describe("toConfig and fromConfig", () => {
  const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../../..");
  // List folder by folder: a recursive listing would include 1.7 million entries of node_modules.
  const examples = readdirSync(join(root, "examples"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => readdirSync(join(root, "examples", name)).map((file) => join(root, "examples", name, file)))
    .filter((file) => /\/config[^/]*\.yaml$/.test(file));

  it("there are examples", () => {
    expect(examples.length).toBeGreaterThan(3);
  });

  it.each(examples)("%s goes there and back", (file) => {
    const options = fromConfig(file);
    const { values, folder: at } = loadConfig(trainConfigSchema, file);
    // Parsing is idempotent.
    expect(checkConfig(trainConfigSchema, values, file)).toEqual(values);
    expect(options).toEqual({ config: values, configFolder: at });
    expect(makeConfig(options).config).toEqual(values);
    const written = toConfig(options);
    const again = join(folder, "again.yaml");
    writeFileSync(again, JSON.stringify(written));
    expect(toConfig(fromConfig(again))).toEqual(written);
    // Paths are absolute; everything else is unchanged.
    const files = (config: unknown) => readKey(config, "data.train_files") as string[];
    expect(files(written)).toEqual(files(values).map((name) => resolve(at, name)));
    expect(readKey(written, "actor_rollout_ref.actor")).toEqual(values.actor_rollout_ref.actor);
  });

  it("overrides are as on the command line; added options override the file", () => {
    const file = join(folder, "config.yaml");
    writeFileSync(file, JSON.stringify(toConfig({ ...given, steps: 3, n: 2 })));
    const options = fromConfig(file, ["trainer.total_training_steps=5"]);
    expect(read(options).trainer.total_training_steps).toBe(5);
    expect(read({ ...options, steps: 7 })).toMatchObject({
      trainer: { total_training_steps: 7 },
      actor_rollout_ref: { rollout: { n: 2 } },
    });
    expect(() => fromConfig(file, ["trainer.steps=5"])).toThrow(
      expect.objectContaining({ code: "config/unknown-key", received: "trainer.steps" }),
    );
    expect(() => fromConfig(join(folder, "nowhere.yaml"))).toThrow(
      expect.objectContaining({ code: "config/unreadable", subject: expect.stringContaining("nowhere.yaml") }),
    );
  });

  it("everything in memory alone is named", () => {
    const judge = () => 1;
    const estimate: AdvantageEstimator = () => ({
      advantages: new Float32Array(0),
      returns: new Float32Array(0),
      metrics: {},
    });
    const nothing = { description: "", inputSchema: z.object({}), execute: () => "" };
    const options: TrainOptions = {
      model: "m.gguf",
      task: defineTask({
        rows: [{ a: 1 }],
        prompt: ({ a }) => `${a}`,
        truth: ({ a }) => a,
        system: "s",
        name: "n",
        reward: judge,
        tools: [tool({ name: "t", ...nothing }), { weather: nothing }],
        interaction: interaction({ name: "teacher", reply: () => "no" }),
      }),
      validation: { rows: [{ a: 2 }] },
      advantages: estimate,
      sampler: function inTurns({ count }) {
        return Array.from({ length: count }, (_, i) => i);
      },
      replay: {
        share: 1,
        sampling: class Few {
          pick = () => [];
        },
      },
      loss: losses.custom(policyLosses.get("gspo")),
      trackers: ["wandb", { name: "mine", start: async () => null, log: async () => {}, finish: async () => {} }],
    };
    let subject = "";
    try {
      toConfig(options);
    } catch (error) {
      subject = (error as ConfigError).subject;
    }
    expect(subject.split(", ").sort()).toEqual(
      [
        "task.rows",
        "task.prompt",
        "task.truth",
        "task.system",
        "task.name",
        "task.reward (function judge)",
        "task.tools[0] (t)",
        "task.tools[1]",
        "task.interaction (teacher)",
        "validation.rows",
        "advantages (function estimate)",
        "sampler (function inTurns)",
        "replay.sampling (function Few)",
        "loss.lossMode",
        "trackers[1] (mine)",
      ].sort(),
    );
    // `train` accepts the options.
    expect(() => makeConfig(options)).not.toThrow();
  });

  it("without a format tool calls are read as the template prints them", () => {
    expect(makeConfig(given).findsToolFormat).toBe(true);
    const format = { actor_rollout_ref: { rollout: { multi_turn: { format: "python" } } } };
    expect(makeConfig({ ...given, config: format }).findsToolFormat).toBe(false);
    expect(
      makeConfig({ ...given, task: defineTask({ ...task.definition, toolFormat: "python" }) }).findsToolFormat,
    ).toBe(false);
  });
});

describe("wrong options", () => {
  const refuse = (options: object): ConfigError => {
    try {
      makeConfig({
        model: "policy.gguf",
        task: defineTask({ rows: [{ question: "?" }], reward: () => 1 }),
        ...options,
      });
    } catch (error) {
      return error as ConfigError;
    }
    throw new Error(`was taken: ${JSON.stringify(options)}`);
  };
  const task = { task: undefined };
  const cases: [options: object, code: string, subject: string, says: RegExp][] = [
    [{ lerningRate: 1 }, "config/unknown-key", "train: lerningRate", /perhaps "learningRate"/],
    [{ save: { evry: 1 } }, "config/unknown-key", "train: save.evry", /perhaps "save.every"/],
    [{ steps: "3" }, "config/bad-value", "train: steps", /a whole number/],
    [{ temperature: 0 }, "config/bad-value", "train: temperature", /above 0/],
    [{ lora: { rank: -1 } }, "config/bad-value", "train: lora.rank", /at least 0/],
    [{ validation: [{ question: "?" }] }, "config/bad-value", "train: validation", /rows, every/],
    [{ validation: {} }, "config/bad-value", "train: validation.rows", /at least one row/],
    [{ validation: { rows: "r.jsonl", every: 0.5 } }, "config/bad-value", "train: validation.every", /whole/],
    [task, "config/bad-value", "train: task", /defineTask/],
    [{ model: undefined }, "config/bad-value", "train: model", /GGUF/],
    [
      { config: { trainer: { total_steps: 1 } } },
      "config/unknown-key",
      "train: config.trainer.total_steps",
      /perhaps "config.trainer.total_training_steps"/,
    ],
    [
      { config: { trainer: { total_training_steps: "x" } } },
      "config/bad-value",
      "train: config.trainer.total_training_steps",
      /whole/,
    ],
    [{ loss: { ...losses.ppo(), clipRatioHigh: -1 } }, "config/bad-value", "train: loss.clipRatioHigh", /0/],
    [{ loss: { ...losses.ppo(), entropyCoeff: "x" } }, "config/bad-value", "train: loss.entropyCoeff", /number/],
  ];

  it.each(cases)("are named as they were written: %j", (options, code, subject, says) => {
    const error = refuse(options);
    expect(error).toMatchObject({ code, subject });
    expect(error.expected).toMatch(says);
  });
});
