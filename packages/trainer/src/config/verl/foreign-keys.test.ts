import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNearest } from "@cria/core/internal";
import { afterAll, describe, expect, it } from "vitest";
import { openTraining } from "../../run/training.js";
import { loadConfig } from "../load-config.js";
import { sftConfigSchema } from "../sft-config.js";
import { trainConfigSchema } from "../train-config.js";
import { verlKeys } from "./verl-keys.js";

/** The error with this code, about a subject whose name holds the text. */
const refusal = (code: string, subject: string, more: object = {}) =>
  expect.objectContaining({ code, subject: expect.stringContaining(subject), ...more });

const root = join(import.meta.dirname, "..", "..", "..", "..", "..");
const example = join(root, "examples", "calculator", "config.yaml");
const folder = mkdtempSync(join(tmpdir(), "cria-foreign-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (...overrides: string[]) => loadConfig(trainConfigSchema, example, overrides);
const load = (...overrides: string[]) => read(...overrides).values;

describe("keys of other frameworks", () => {
  it("that mean nothing here are accepted, with one warning for each reason", () => {
    const { values: config, warnings } = read(
      "trainer.n_gpus_per_node=8",
      "actor_rollout_ref.actor.fsdp_config.param_offload=true",
      "actor_rollout_ref.actor.strategy=fsdp",
      "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
    );
    expect(config).toEqual(load());
    expect(warnings).toHaveLength(3);
    expect(warnings.join("")).toMatch(/fsdp_config, .*actor\.strategy has no effect: weights are not sharded/);
  });

  it("under another name for the same thing are taken over", () => {
    const config = load("actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096");
    expect(config.actor_rollout_ref.actor.ppo_max_token_len).toBe(4096);
    const { optim } = load("actor_rollout_ref.actor.optim.warmup_style=cosine").actor_rollout_ref.actor;
    expect(optim.lr_scheduler_type).toBe("cosine");
    expect(load("critic.optim.warmup_style=null")).toEqual(load());
  });

  it("of missing features pass with the value of the present behaviour, and are refused otherwise", () => {
    const { values, warnings } = read(
      "actor_rollout_ref.rollout.skip_rollout=False",
      "actor_rollout_ref.rollout.calculate_log_probs=true",
      "trainer.default_hdfs_dir=null",
    );
    expect(values).toEqual(load());
    expect(warnings).toEqual([]);
    for (const [override, expected] of [
      ["actor_rollout_ref.rollout.skip_rollout=true", "false"],
      ["actor_rollout_ref.rollout.ignore_eos=true", "false"],
      ["trainer.default_hdfs_dir=hdfs://x", "null"],
    ] as const) {
      expect(() => load(override)).toThrow(refusal("config/not-supported", override.split("=")[0]!, { expected }));
    }
  });

  it("of unused sections are named", () => {
    const { values, warnings } = read(
      "+trainer.v1.separate_async.hybrid_rollout.enable_switch=true",
      "+trainer.v1.sampler.sampler_kwargs={}",
      "+skip.rollout.dump_dir=/x",
      "+rollout.nnodes=2",
    );
    expect(values).toEqual(load());
    for (const key of [
      "trainer.v1.separate_async.hybrid_rollout.enable_switch",
      "skip.rollout.dump_dir",
      "rollout.nnodes",
    ])
      expect(warnings.join("\n")).toContain(key);
    expect(warnings.join()).not.toMatch(/sampler_kwargs/);
  });

  it.each([
    "trainer.v1.sampler.custom_sampler={path: x.py, name: Mine}",
    "trainer.v1.sampler.custom_sampler.path=x.ts",
    "skip.rollout.enable=true",
    "actor_rollout_ref.ref.model.path=other.gguf",
  ])("of other trainings are refused: %s", (override) => {
    expect(() => load(`+${override}`)).toThrow(expect.objectContaining({ code: "config/not-supported" }));
  });

  it("that are another name of a key of Cria's have its effect", () => {
    const refills = load("+trainer.v1.sampler.sync_refill_failed_groups=true");
    expect(refills.actor_rollout_ref.rollout.on_failure).toBe("refill");
    const { path } = load().actor_rollout_ref.model;
    expect(load(`+actor_rollout_ref.ref.model.path=${path}`, `actor_rollout_ref.model.path=${path}`)).toEqual(
      load(`actor_rollout_ref.model.path=${path}`),
    );
    // For the fully asynchronous trainer, half a batch ahead counts as one step ahead.
    const { v1 } = load("+async_training.staleness_threshold=0.5", "data.train_batch_size=0").trainer;
    expect(v1).toMatchObject({ trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 1 } });
    expect(load("+async_training.staleness_threshold=0", "data.train_batch_size=0").trainer.v1.trainer_mode).toBe(
      "sync",
    );
    const correction = "algorithm.rollout_correction";
    expect(load(`${correction}={rollout_is: null, rollout_is_threshold: null}`)).toEqual(load());
    expect(() => load(`${correction}={rollout_is: token, rollout_is_threshold: null}`)).toThrow(
      refusal("config/bad-value", "rollout_is_threshold"),
    );
  });

  it("that name a module which chooses groups of verl's buffer choose the replayed groups", () => {
    const custom = "trainer.v1.sampler.custom_sampler";
    const kwargs = "+trainer.v1.sampler.sampler_kwargs={keep: 2}";
    const { replay } = load(`+${custom}={path: /x/mine.ts, name: Mine}`, kwargs).algorithm;
    expect(replay).toMatchObject({ sampling: "/x/mine.ts#Mine", sampling_kwargs: { keep: 2 } });
    // A typed path starts at the working directory.
    const typed = load(`+${custom}={path: mine.ts, name: Mine}`).algorithm.replay;
    expect(typed).toMatchObject({ sampling: `${join(process.cwd(), "mine.ts")}#Mine`, sampling_kwargs: {} });
    const { values, warnings } = read(
      "algorithm.replay.sampling=newest",
      `+${custom}={path: mine.ts, name: Mine}`,
      kwargs,
    );
    expect(values.algorithm.replay).toMatchObject({ sampling: "newest", sampling_kwargs: {} });
    expect(warnings.join()).toMatch(/custom_sampler.*algorithm\.replay\.sampling says it/);
  });

  it("that stream prompts make steps of the prompts between two synchronisations of weights", () => {
    const { values, warnings } = read(
      "data.train_batch_size=0",
      "actor_rollout_ref.actor.ppo_mini_batch_size=4",
      "+async_training.require_batches=3",
      "+rollout.total_rollout_steps=100",
    );
    expect(values.data.train_batch_size).toBe(48);
    expect(values.trainer.total_training_steps).toBe(2);
    expect(warnings.join()).toMatch(/48, the prompts/);
  });

  it("in the overrides of the field's own multi-turn scripts are all known", () => {
    const rollout = "actor_rollout_ref.rollout";
    const actor = "actor_rollout_ref.actor";
    const model = "actor_rollout_ref.model";
    const config = load(
      ...["train_batch_size=512", "val_batch_size=256", "max_prompt_length=1024", "max_response_length=3072"].map(
        (override) => `data.${override}`,
      ),
      "data.filter_overlong_prompts=True",
      "data.truncation=left",
      "data.return_raw_chat=True",
      ...["use_remove_padding=True", "enable_gradient_checkpointing=True", "lora_rank=32", "lora_alpha=32"].map(
        (override) => `${model}.${override}`,
      ),
      `+${model}.enable_activation_offloading=True`,
      `${model}.target_modules=[q_proj,v_proj]`,
      `${actor}.optim.lr=1e-6`,
      `${actor}.optim.lr_warmup_steps_ratio=0.285`,
      `${actor}.ppo_micro_batch_size_per_gpu=8`,
      `${actor}.fsdp_config.param_offload=False`,
      `++${actor}.fsdp_config.model_dtype=bfloat16`,
      `${actor}.use_dynamic_bsz=False`,
      `${actor}.clip_ratio_c=10.0`,
      `${rollout}.log_prob_micro_batch_size_per_gpu=8`,
      `${rollout}.name=sglang`,
      `${rollout}.mode=async`,
      `${rollout}.update_weights_bucket_megabytes=512`,
      `${rollout}.multi_stage_wake_up=True`,
      `${rollout}.max_model_len=15000`,
      `${rollout}.trace.backend=mlflow`,
      `${rollout}.trace.token2text=True`,
      `${rollout}.val_kwargs.top_k=-1`,
      `${rollout}.val_kwargs.n=30`,
      "actor_rollout_ref.ref.fsdp_config.param_offload=True",
      "algorithm.kl_ctrl.kl_coef=0.0",
      "algorithm.filter_groups.enable=True",
      "trainer.log_val_generations=20",
      "trainer.logger=['console','wandb']",
      "trainer.nnodes=1",
    );
    expect(config.trainer.log_val_generations).toBe(20);
    expect(config.actor_rollout_ref.model.target_modules).toEqual(["attn_q", "attn_v"]);
  });

  it("without effect are not suggested for a misspelt key", () => {
    expect(() => load("trainer.resume_mod=disable")).toThrow(
      refusal("config/unknown-key", "trainer.resume_mod", {
        expected: expect.stringContaining('"trainer.resume_mode"'),
      }),
    );
    expect(() => load("trainer.n_gpu_per_node=8")).toThrow(
      refusal("config/unknown-key", "trainer.n_gpu_per_node", { expected: undefined }),
    );
    expect(findNearest("something", ["else"])).toBeUndefined();
  });

  it("are in the table only if the schema does not have them", () => {
    const all = Object.keys(verlKeys).filter((key) => !("alias" in verlKeys[key]!));
    expect(all.length).toBeGreaterThan(250);
    for (const key of all) {
      let node: unknown = load();
      for (const part of key.split(".")) node = (node as Record<string, unknown> | undefined | null)?.[part];
      expect(node, key).toBeUndefined();
    }
  });
});

describe("names that only registries know", () => {
  const unknown = (received: string, name: string) => ({
    code: "config/unknown-name",
    expected: expect.stringContaining(name),
    received,
  });
  const wrong = (subject: string, expected: string) => ({
    code: "config/bad-value",
    subject: expect.stringContaining(subject),
    expected: expect.stringContaining(expected),
  });
  it.each([
    ["critic.loss_agg_mode=token_mean", unknown("token_mean", "token-mean")],
    ["algorithm.adv_estimator=gropo", unknown("gropo", "grpo_passk")],
    ["algorithm.kl_penalty=k9", unknown("k9", "low_var_kl")],
    ["algorithm.rollout_correction={rollout_rs: token_k9}", unknown("token_k9", "seq_max_k2")],
    ["algorithm.rollout_correction={rollout_rs: token_k2}", wrong("rollout_rs_threshold", "token_k2")],
    ["algorithm.rollout_correction={loss_type: reinforce}", wrong("loss_type", "")],
    [
      [
        "algorithm.rollout_correction={bypass_mode: true, loss_type: reinforce}",
        "actor_rollout_ref.actor.policy_loss.loss_mode=gspo",
      ],
      { code: "config/bad-value" },
    ],
    ["actor_rollout_ref.actor.policy_loss.loss_mode=bypass_mode", wrong("loss_mode", "bypass_mode true")],
    ["actor_rollout_ref.actor.policy_loss.loss_mode=dro", wrong("dro_beta", "")],
    [
      ["algorithm.rollout_correction.bypass_mode=true", "algorithm.adv_estimator=tir_optimal_token_baseline"],
      wrong("adv_estimator tir_optimal_token_baseline", "bypass_mode false"),
    ],
    ["algorithm.adv_estimator=gdpo", wrong("gdpo_reward_keys", "[score, format]")],
    ["algorithm.gdpo_reward_weights=[1]", wrong("gdpo_reward_weights", "gdpo_reward_keys")],
    [
      ["algorithm.adv_estimator=gdpo", "algorithm.gdpo_reward_keys=[score]", "algorithm.use_kl_in_reward=true"],
      wrong("adv_estimator gdpo", "use_kl_in_reward false"),
    ],
    [
      "algorithm.rollout_correction={rollout_is_batch_normalize: true}",
      wrong("rollout_is_batch_normalize", "rollout_is"),
    ],
    ["actor_rollout_ref.actor.policy_loss.loss_mode=gspoo", unknown("gspoo", "vanilla")],
    ["actor_rollout_ref.actor.loss_agg_mode=seq-mean", unknown("seq-mean", "token-mean")],
    ["actor_rollout_ref.actor.kl_loss_type=k9", unknown("k9", "low_var_kl")],
    ["actor_rollout_ref.rollout.agent.default_agent_loop=react", unknown("react", "tool_agent")],
    ["actor_rollout_ref.rollout.multi_turn.enable=false", wrong("multi_turn", "multi_turn.enable true")],
    [
      ["actor_rollout_ref.rollout.multi_turn={enable: false, interaction_config_path: x.yaml}"],
      wrong("multi_turn.interaction_config_path", ""),
    ],
  ])("%s is refused before a model is loaded", async (given, details) => {
    // The model does not exist: a complaint about it would come first if it were loaded first.
    const overrides = [given].flat();
    const { values } = loadConfig(trainConfigSchema, example, [...overrides, "actor_rollout_ref.model.path=none.gguf"]);
    await expect(openTraining(values, folder)).rejects.toMatchObject(details);
  });
});

describe("reward functions by path", () => {
  const open = (path: string) => {
    const overrides = [`custom_reward_function.path=${path}`, "actor_rollout_ref.model.path=none.gguf"];
    const { values, folder: base } = loadConfig(trainConfigSchema, example, overrides);
    return openTraining(values, base);
  };

  it("that are missing, broken or lack the export are errors that name the file", async () => {
    await expect(open(join(folder, "none.mjs"))).rejects.toThrow(refusal("config/unreadable", "none.mjs"));
    writeFileSync(join(folder, "broken.mjs"), "export function {");
    await expect(open(join(folder, "broken.mjs"))).rejects.toThrow(refusal("config/unreadable", "broken.mjs"));
    writeFileSync(join(folder, "other.mjs"), "export const judge = () => 1;");
    await expect(open(join(folder, "other.mjs"))).rejects.toThrow(
      refusal("config/bad-value", "#computeScore", { received: "judge" }),
    );
  });
});

describe("overrides", () => {
  it("cannot reach beyond the config", () => {
    expect(() => load("__proto__.polluted=1")).toThrow(refusal("config/unknown-key", "__proto__"));
    expect(() => load("trainer.__proto__.polluted=1")).toThrow(refusal("config/unknown-key", "__proto__"));
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("must be YAML, and a wrong union value gets the allowed ones", () => {
    expect(() => load("trainer.seed=[1,")).toThrow(refusal("config/bad-override", "trainer.seed=[1,"));
    expect(() => load("data.train_files=3")).toThrow(
      refusal("config/bad-value", "data.train_files", { received: "3" }),
    );
  });
});

describe("keys of verl's supervised trainer", () => {
  it("of both versions have their effect, or are set aside with a reason", () => {
    const file = join(folder, "sft.yaml");
    writeFileSync(file, "trainer: { nnodes: 1, n_gpus_per_node: 8, total_epochs: 2 }");
    const { values, warnings } = loadConfig(sftConfigSchema, file, [
      "model.partial_pretrain=m.gguf",
      "model.fsdp_config.cpu_offload=true",
      "data.train_files=a.parquet",
      "data.val_files=b.parquet",
      "data.multiturn.enable=true",
      "data.multiturn.messages_key=talk",
      "data.micro_batch_size=4",
      "optim.lr_scheduler=cosine",
      "optim.warmup_steps_ratio=0.2",
      "trainer.max_ckpt_to_keep=3",
      "use_remove_padding=true",
    ]);
    expect(values).toMatchObject({
      model: { path: join(process.cwd(), "m.gguf") },
      data: { messages_key: "talk" },
      optim: { lr_scheduler_type: "cosine", lr_warmup_steps_ratio: 0.2 },
      trainer: { max_actor_ckpt_to_keep: 3, total_epochs: 2 },
    });
    expect(warnings.join("")).toMatch(/data\.multiturn\.enable has no effect: a row is always a conversation/);
  });
});

describe("configs in this repository", () => {
  it.each([
    [trainConfigSchema, "examples/calculator/config.yaml"],
    [trainConfigSchema, "examples/gsm8k/config.yaml"],
    [trainConfigSchema, "examples/gsm8k/config-interaction.yaml"],
    [sftConfigSchema, "models/sft-1.yaml"],
    [sftConfigSchema, "models/sft-2.yaml"],
  ])("are valid: %#", (schema, file) => {
    expect(loadConfig(schema, join(root, file)).warnings).toEqual([]);
  });
});
