// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are shell scripts and interpolations
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { loadConfig } from "../load-config.js";
import { trainConfigSchema } from "../train-config.js";
import { formatConversion } from "./format-conversion.js";
import { convertVerlFile } from "./from-verl.js";

const folder = mkdtempSync(join(tmpdir(), "cria-from-verl-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());

/** Converts a text, prints it, and loads what was printed. */
function convert(name: string, text: string, args: string[] = [], environment: Record<string, string> = {}) {
  const file = join(folder, name);
  writeFileSync(file, text);
  const conversion = convertVerlFile(file, args, environment);
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

  it("with what is to fill in, what is not supported, and what was set aside, each with its reason", () => {
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
    // What is to fill in, and what nothing reads, is not made up.
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
    expect(() => convertVerlFile(join(folder, "none.sh"))).toThrow(/none\.sh: cannot be read/);
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
    expect(toFillIn).toEqual([{ key: "actor_rollout_ref.rollout.seed", reason: "${no.such} stands for nothing here" }]);
    expect(setAside.map(({ key }) => key)).toContain("actor_rollout_ref.actor._target_");
  });

  it("is refused when it is none", () => {
    expect(() => convert("a.yaml", "- 1")).toThrow(/not a mapping/);
    expect(() => convert("a.yaml", "a: [")).toThrow(/is not YAML/);
  });
});
