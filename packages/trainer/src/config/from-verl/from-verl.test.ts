// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are shell scripts and interpolations
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { loadConfig } from "../load-config.js";
import { readKey, writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import { formatConversion } from "./format-conversion.js";
import { convertVerlFiles } from "./from-verl.js";

const defaults = join(import.meta.dirname, "..", "..", "..", "fixtures", "verl-keys");
const folder = mkdtempSync(join(tmpdir(), "cria-from-verl-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());

/** Converts a text, prints it, and loads what was printed. */
function convert(name: string, text: string, args: string[] = [], env: Record<string, string> = {}) {
  const file = join(folder, name);
  writeFileSync(file, text);
  const conversion = convertVerlFiles([file], args, env);
  const printed = formatConversion(conversion, name);
  writeFileSync(join(folder, "out.yaml"), printed);
  const warnings = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const { values } = loadConfig(trainConfigSchema, join(folder, "out.yaml"));
  expect(warnings).not.toHaveBeenCalled();
  warnings.mockRestore();
  return { ...conversion, printed, values };
}

const script = `
MODEL_PATH=\${MODEL_PATH:-Qwen/Qwen3-8B}
python3 -m verl.trainer.main_ppo \\
  algorithm.adv_estimator=grpo \\
  data.train_files=$HOME/train.parquet data.max_prompt_length=$((2 * 512)) \\
  actor_rollout_ref.model.path=$MODEL_PATH \\
  actor_rollout_ref.rollout.n=$N \\
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096 \\
  trainer.logger='["console","swanlab"]' trainer.nnodes=1 \\
  actor_rollout_ref.model.mtp.enable=True trainer.total_epoch=3 "$@"
`;

describe("a script of verl", () => {
  it("becomes a config that loads, under Cria's names", () => {
    const { values } = convert("run.sh", script, ["trainer.save_freq=5"], { HOME: "/me" });
    expect(values.data).toMatchObject({ train_files: ["/me/train.parquet"], max_prompt_length: 1024 });
    expect(values.actor_rollout_ref.actor.ppo_max_token_len).toBe(4096);
    expect(values.actor_rollout_ref.rollout.prompt_length).toBe(1024);
    expect(values.trainer.save_freq).toBe(5);
  });

  it("lists keys to fill in, unsupported keys and keys set aside, each with its reason", () => {
    const { toFillIn, unsupported, setAside, printed } = convert("run.sh", script);
    expect(toFillIn).toEqual([
      { key: "data.train_files", reason: "$HOME is not set" },
      { key: "actor_rollout_ref.rollout.n", reason: "$N is not set" },
      { key: "actor_rollout_ref.model.path", reason: "Qwen/Qwen3-8B: must be a GGUF file of that model" },
    ]);
    expect(unsupported).toEqual([
      { key: "actor_rollout_ref.model.mtp.enable", reason: "true is not supported yet" },
      {
        key: "trainer.total_epoch",
        reason: expect.stringMatching(/not a key that Cria knows; perhaps trainer\.total_epochs/),
      },
      { key: "trainer.logger.1", reason: expect.stringMatching(/^"swanlab" cannot be taken: one of console/) },
    ]);
    expect(setAside.map(({ key }) => key)).toEqual([
      "trainer.nnodes",
      "actor_rollout_ref.rollout.tensor_model_parallel_size",
    ]);
    expect(printed).toMatch(/# Set aside:\n# {3}trainer\.nnodes: there is one machine\n/);
    expect(printed.split("\n").every((line) => line.length <= 120)).toBe(true);
  });

  it("has verl's default where training depends on it and the script says nothing", () => {
    const { values, verlDefaults, printed } = convert("run.sh", script);
    expect(values.actor_rollout_ref.actor).toMatchObject({ shuffle: false, optim: { lr: 1e-6, weight_decay: 0.01 } });
    expect(values.actor_rollout_ref.rollout.multi_turn.enable).toBe(false);
    expect(printed).toMatch(/lr: 0\.000001 # verl's default/);
    // No defaults for keys that the reader fills in, or that nothing reads.
    for (const key of ["actor_rollout_ref.rollout.n", "critic.optim.lr", "actor_rollout_ref.actor.tau_neg"])
      expect(verlDefaults).not.toContain(key);
    const tools = convert("run.sh", script, ["actor_rollout_ref.rollout.multi_turn.tool_config_path=tools.yaml"]);
    expect(tools.values.actor_rollout_ref.rollout.multi_turn.enable).toBe(true);
  });

  it("without model, rows and estimator trains as verl would", () => {
    const { values, toFillIn } = convert("run.sh", "python3 -m verl.trainer.main_ppo trainer.total_epochs=2");
    expect(values.algorithm.adv_estimator).toBe("gae");
    expect(values.critic.optim.lr).toBe(1e-5);
    expect(toFillIn.map(({ key }) => key)).toEqual(["actor_rollout_ref.model.path", "data.train_files"]);
  });

  it("names of Python files are to be replaced", () => {
    const { toFillIn } = convert("run.sh", "x custom_reward_function.path=a/reward.py data.custom_cls.path=./rows.py");
    expect(toFillIn.map(({ reason }) => reason).join()).toMatch(
      /reward\.py: must be a JavaScript[\s\S]*rows\.py: must be/,
    );
  });

  it("is refused when it cannot be read", () => {
    expect(() => convertVerlFiles([join(folder, "none.sh")])).toThrow(
      expect.objectContaining({ code: "config/unreadable", subject: expect.stringMatching(/none\.sh$/) }),
    );
  });
});

describe("a YAML config of verl", () => {
  it("is read with its interpolations, without Hydra's own keys", () => {
    const { values, toFillIn, setAside } = convert(
      "ppo.yaml",
      `
defaults: [actor]
hydra: { searchpath: [x] }
data: { train_files: a.parquet, max_response_length: 64, train_batch_size: "\${oc.env:BATCH,32}" }
actor_rollout_ref:
  model: { path: m.gguf }
  actor: { _target_: verl.Actor, loss_scale_factor: "\${data.max_response_length}", optim: { _target_: verl.Optim, lr: 1e-5 } }
  rollout: { response_length: "\${oc.select:data.max_response_length,512}", max_model_len: "\${oc.select:none,null}", seed: "\${no.such}" }
`,
      ["trainer.total_epochs=2"],
    );
    expect(values.actor_rollout_ref.actor).toMatchObject({ loss_scale_factor: 64, optim: { lr: 1e-5 } });
    expect(values.actor_rollout_ref.rollout).toMatchObject({ response_length: 64, max_model_len: null });
    expect(values.data.train_batch_size).toBe(32);
    expect(values.trainer.total_epochs).toBe(2);
    expect(toFillIn.map(({ key }) => key)).toEqual(["actor_rollout_ref.rollout.seed", "defaults: actor"]);
    expect(setAside.map(({ key }) => key)).toContain("actor_rollout_ref.actor._target_");
  });

  it.each(["v0.7.0", "v0.9"])(
    "is taken as a command of %s composed it: all of its defaults, and nothing to solve",
    (version) => {
      const keys = JSON.parse(readFileSync(join(defaults, `defaults-${version}.json`), "utf8"));
      const raw: Record<string, unknown> = {};
      for (const [key, value] of Object.entries({ ...keys, "actor_rollout_ref.rollout.n": 5 }))
        writeKey(raw, key, value);
      const { values, toFillIn, unsupported } = convert("composed.yaml", stringify(raw));
      expect(values.actor_rollout_ref).toMatchObject({ actor: { optim: { lr: 1e-6 } }, rollout: { n: 5 } });
      expect(toFillIn.map(({ key }) => key)).toEqual(["actor_rollout_ref.model.path", "critic.model.path"]);
      expect(unsupported).toEqual([]);
    },
  );

  it("is refused if it is not one", () => {
    expect(() => convert("a.yaml", "- 1")).toThrow(expect.objectContaining({ code: "config/bad-file" }));
  });

  it.each([
    ["a list without an end", "a: ["],
    ["an alias to itself", "a: &x [*x]"],
    ["an alias to what holds it", "trainer: &a\n  total_training_steps: *a"],
    ["a tag that nobody resolves", "trainer: {total_training_steps: !mine 3}"],
    ["thousands of levels", `a: ${"[".repeat(20_000)}${"]".repeat(20_000)}`],
  ])("is refused, and named, with %s", (_, text) => {
    const unreadable = { code: "config/unreadable", subject: expect.stringMatching(/a\.yaml$/) };
    expect(() => convert("a.yaml", text)).toThrow(expect.objectContaining(unreadable));
  });
});

/** Writes files of a copy of verl's repository; returns where each lies. */
function write(files: Record<string, string>): string[] {
  return Object.entries(files).map(([name, text]) => {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  });
}

const base = `
hydra: { searchpath: [file://verl/trainer/config] }
defaults: [ppo_trainer, _self_]
data: { max_prompt_length: 1024, train_batch_size: 256 }
actor_rollout_ref: { rollout: { n: 4, multi_turn: { enable: true, max_assistant_turns: 5 } } }
`;
const multiTurn = `
PROJECT_DIR="$(pwd)"
CONFIG_PATH="$PROJECT_DIR/examples/config"
python3 -m verl.trainer.main_ppo --config-path="$CONFIG_PATH" --config-name='turns_grpo' \\
  actor_rollout_ref.rollout.n=16 actor_rollout_ref.actor.use_kl_loss=True \\
  actor_rollout_ref.rollout.multi_turn.tool_config_path="$PROJECT_DIR/tools.yaml"
`;
const turns = "actor_rollout_ref.rollout.multi_turn";

describe("a script with a config", () => {
  it("is read with the file of --config-name if it exists; overrides win", () => {
    const [script] = write({ "a/examples/multi/run.sh": multiTurn, "a/examples/config/turns_grpo.yaml": base });
    const { config, toFillIn, verlDefaults, notes } = convertVerlFiles([script!], [], {});
    expect(readKey(config, "actor_rollout_ref.rollout.n")).toBe(16);
    expect(readKey(config, "actor_rollout_ref.actor.use_kl_loss")).toBe(true);
    expect(readKey(config, "data.train_batch_size")).toBe(256);
    expect(readKey(config, `${turns}.enable`)).toBe(true);
    expect(readKey(config, `${turns}.max_assistant_turns`)).toBe(5);
    expect(toFillIn.map(({ key }) => key)).toContain(`${turns}.tool_config_path`);
    expect(verlDefaults).not.toContain("data.train_batch_size");
    expect(notes.join()).toMatch(/turns_grpo\.yaml/);
  });

  it("is converted whole from several files, in any order; configs count in theirs", () => {
    const [script, yaml, second] = write({
      "b/run.sh": multiTurn,
      "b/elsewhere/turns_grpo.yaml": base,
      "b/elsewhere/second.yaml": "data: { train_batch_size: 64 }",
    });
    for (const files of [
      [script!, yaml!, second!],
      [yaml!, script!, second!],
    ]) {
      const { config, toFillIn } = convertVerlFiles(files, ["actor_rollout_ref.rollout.n=3"], {});
      expect(readKey(config, "actor_rollout_ref.rollout.n")).toBe(3);
      expect(readKey(config, "actor_rollout_ref.actor.use_kl_loss")).toBe(true);
      expect(readKey(config, "data.train_batch_size")).toBe(64);
      expect(readKey(config, "data.max_prompt_length")).toBe(1024);
      expect(toFillIn.map(({ key }) => key)).not.toContain("--config-name=turns_grpo");
    }
    expect(() => convertVerlFiles([script!, script!])).toThrow(
      expect.objectContaining({ code: "config/not-supported" }),
    );
  });

  it("names a missing file, and has several turns whatever that file has", () => {
    const [script] = write({ "c/run.sh": multiTurn });
    const { config, toFillIn, verlDefaults } = convertVerlFiles([script!], [], {});
    expect(toFillIn[0]!.key).toBe("--config-name=turns_grpo");
    expect(verlDefaults).not.toContain(`${turns}.enable`);
    expect(trainConfigSchema.parse(config).actor_rollout_ref.rollout.multi_turn.enable).toBe(true);
    // Without a config of its own the key that could not be read says it alone.
    const [alone] = write({ "d/run.sh": multiTurn.replace(/--config-\S+ --config-\S+/, "") });
    expect(convertVerlFiles([alone!], [], {}).verlDefaults).not.toContain(`${turns}.enable`);
    const [single] = write({ "d/single.sh": "python3 -m verl.trainer.main_ppo data.train_batch_size=4" });
    expect(convertVerlFiles([single!], [], {}).verlDefaults).toContain(`${turns}.enable`);
  });

  it("is composed as Hydra does: defaults in their order, groups at their sections", () => {
    const [yaml] = write({
      "e/top.yaml": `
defaults: [ppo_trainer, first, rewards/own@reward, { "sampling@actor_rollout_ref.rollout": hot }, _self_, last]
data: { max_prompt_length: 2, max_response_length: 2 }
`,
      "e/first.yaml": "data: { max_prompt_length: 1, seed: 1 }",
      "e/last.yaml": "defaults: [top]\ndata: { max_response_length: 3 }",
      "e/sampling/hot.yaml": "temperature: 0.5",
    });
    const { config, toFillIn } = convertVerlFiles([yaml!]);
    expect(config.data).toMatchObject({ max_prompt_length: 2, max_response_length: 3, seed: 1 });
    expect(readKey(config, "actor_rollout_ref.rollout.temperature")).toBe(0.5);
    expect(toFillIn.map(({ key }) => key)).toContain("defaults: rewards/own@reward");
  });
});

const streamed = `
python3 -m verl.experimental.fully_async_policy.fully_async_main data.train_files=a.parquet \\
  data.train_batch_size=0 actor_rollout_ref.model.path=m.gguf actor_rollout_ref.actor.ppo_mini_batch_size=$MINI \\
  actor_rollout_ref.actor.optim.lr_warmup_steps=10 rollout.nnodes=1 rollout.total_rollout_steps=51200 \\
  rollout.total_epochs=10 rollout.test_freq=5 trainer.test_freq=-1 async_training.staleness_threshold=0.5 \\
  async_training.trigger_parameter_sync_step=4 async_training.require_batches=2 async_training.partial_rollout=True
`;

describe("a script of verl's fully asynchronous trainer", () => {
  it("trains on the prompts between two synchronisations, as many updates and steps as verl makes of them", () => {
    const { values, verlDefaults, setAside, unsupported, printed } = convert("async.sh", streamed, [], { MINI: "32" });
    expect(values.data.train_batch_size).toBe(256);
    expect(values.actor_rollout_ref.actor.ppo_mini_batch_size).toBe(32);
    expect(values.actor_rollout_ref.actor.optim.lr_warmup_steps).toBe(3);
    expect(values.trainer).toMatchObject({ total_training_steps: 200, total_epochs: 10, test_freq: 5 });
    expect(values.algorithm.rollout_correction.bypass_mode).toBe(true);
    expect(verlDefaults).not.toContain("data.train_batch_size");
    expect(values.trainer.v1).toMatchObject({
      trainer_mode: "colocate_async",
      colocate_async: { num_warmup_batches: 1 },
    });
    expect(unsupported).toEqual([]);
    expect(setAside.map(({ key }) => key).sort()).toEqual([
      "actor_rollout_ref.actor.optim.lr_warmup_steps",
      "async_training.partial_rollout",
      "async_training.staleness_threshold",
      "data.train_batch_size",
      "rollout.nnodes",
      "rollout.total_rollout_steps",
      "trainer.test_freq",
    ]);
    expect(printed).toMatch(/256, the prompts\s/);
  });

  it("has its mini-batch of verl's default, and no batch size where one of its numbers is open", () => {
    const without = streamed.replace(/actor_rollout_ref\.actor\.ppo_mini_batch_size=\$MINI/, "");
    expect(convert("async.sh", without).values.data.train_batch_size).toBe(2048);
    const { toFillIn, verlDefaults, setAside } = convert("async.sh", streamed);
    expect(toFillIn.map(({ key }) => key)).toEqual([
      "actor_rollout_ref.actor.ppo_mini_batch_size",
      "data.train_batch_size",
    ]);
    expect(verlDefaults).not.toContain("data.train_batch_size");
    expect(setAside.map(({ key }) => key)).toContain("rollout.total_rollout_steps");
  });

  it("of verl 0.7 says by other names whose logprobs are the old ones", () => {
    const read = (...args: string[]) =>
      convert("async.sh", streamed, args, { MINI: "1" }).values.algorithm.rollout_correction.bypass_mode;
    expect(read("async_training.use_rollout_log_probs=True", "async_training.compute_prox_log_prob=True")).toBe(false);
    expect(read("async_training.use_rollout_log_probs=True", "async_training.compute_prox_log_prob=False")).toBe(true);
  });

  it("of one step has its batch size, conversations of the step before, and bypass_mode as its own config", () => {
    const script = "python3 -m verl.experimental.one_step_off_policy.main_ppo data.train_batch_size=64";
    const { values, notes } = convert("one.sh", script, ["actor_rollout_ref.model.path=m.gguf"]);
    expect(values.data.train_batch_size).toBe(64);
    const ahead = { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 1 } };
    expect(values.trainer.v1).toMatchObject(ahead);
    expect(notes).toEqual([expect.stringContaining("trainer.v1.trainer_mode")]);
    expect(convert("one.sh", script, ["trainer.v1.trainer_mode=sync"]).values.trainer.v1.trainer_mode).toBe("sync");
    expect(values.algorithm.rollout_correction.bypass_mode).toBe(true);
    const old = convert("one.sh", script, ["rollout.nnodes=1"]);
    expect(old.values.algorithm.rollout_correction.bypass_mode).toBe(false);
    expect(old.values.trainer.v1).toMatchObject(ahead);
    expect(old.setAside.map(({ key }) => key)).toEqual(["rollout.nnodes"]);
  });
});
