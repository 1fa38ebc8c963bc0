import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseYaml } from "@cria/tools/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import {
  isCut,
  listVerlScripts,
  type VerlScript,
  verlBaseConfigs,
  writeVerlScript,
} from "../../testing/verl-scripts.js";
import { checkConfig } from "../check-config.js";
import { readLag } from "../derived-values.js";
import { readKey, writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import type { Conversion } from "./convert-config.js";
import { convertVerlFiles } from "./from-verl.js";

const page = join(import.meta.dirname, "..", "..", "..", "..", "..", "docs", "verl-scripts.md");
const folder = mkdtempSync(join(tmpdir(), "cria-verl-scripts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The facts as a copy of verl's repository: scripts start from the configs that lie there. */
function write(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

beforeAll(() => {
  for (const [name, keys] of Object.entries(verlBaseConfigs)) {
    const raw: Record<string, unknown> = { defaults: ["ppo_trainer", "_self_"] };
    for (const [key, value] of Object.entries(keys)) writeKey(raw, key, value);
    write(`examples/sglang_multiturn/config/${name}.yaml`, stringify(raw));
  }
});

const convert = (script: VerlScript) => convertVerlFiles([write(script.path, writeVerlScript(script))], [], {});

const rollout = "actor_rollout_ref.rollout";
const multiTurn = `${rollout}.multi_turn`;
const miniBatch = "actor_rollout_ref.actor.ppo_mini_batch_size";

/** Names of verl's that are others here; their values stay. */
const renamed: Record<string, string> = {
  "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": "actor_rollout_ref.actor.ppo_max_token_len",
  "critic.ppo_max_token_len_per_gpu": "critic.ppo_max_token_len",
  "actor_rollout_ref.actor.optim.clip_grad": "actor_rollout_ref.actor.grad_clip",
  "reward.custom_reward_function.path": "custom_reward_function.path",
  "reward.custom_reward_function.name": "custom_reward_function.name",
  "reward.reward_manager.name": "reward_model.reward_manager",
  "reward.reward_model.enable": "reward_model.enable",
  "reward_model.reward_kwargs.overlong_buffer_cfg.enable": "reward_model.overlong_buffer.enable",
  "reward_model.reward_kwargs.overlong_buffer_cfg.len": "reward_model.overlong_buffer.len",
  "reward_model.reward_kwargs.overlong_buffer_cfg.penalty_factor": "reward_model.overlong_buffer.penalty_factor",
  "reward.reward_kwargs.overlong_buffer_cfg.enable": "reward_model.overlong_buffer.enable",
  "reward.reward_kwargs.overlong_buffer_cfg.len": "reward_model.overlong_buffer.len",
  "reward.reward_kwargs.overlong_buffer_cfg.penalty_factor": "reward_model.overlong_buffer.penalty_factor",
  "rollout.total_epochs": "trainer.total_epochs",
  "rollout.test_freq": "trainer.test_freq",
  "async_training.use_rollout_log_probs": "algorithm.rollout_correction.bypass_mode",
  "actor_rollout_ref.actor.use_rollout_log_probs": "algorithm.rollout_correction.bypass_mode",
};

/** Values that say what is so here in any case. */
const given: Record<string, unknown> = {
  "reward_model.reward_kwargs.overlong_buffer_cfg.log": false,
  "reward.reward_kwargs.overlong_buffer_cfg.log": false,
  [`${rollout}.calculate_log_probs`]: true,
  [`${rollout}.ignore_eos`]: false,
  "actor_rollout_ref.actor.optim.optimizer": "AdamW",
  "algorithm.rollout_correction.rollout_is_threshold": null,
  "rollout.total_rollout_steps": null,
};

/** Factors of the batch size of a streamed training, as the script says them. */
const factors = [miniBatch, "async_training.require_batches", "async_training.trigger_parameter_sync_step"];

const isOpen = (text: string) => text.includes("$") || isCut(text);

/** Arguments of a script that are neither in its conversion, nor reported. */
function findLost(script: VerlScript, conversion: Conversion): string[] {
  const { config, toFillIn, unsupported, setAside } = conversion;
  const named = [...toFillIn, ...unsupported, ...setAside].map(({ key }) => key);
  const isNamed = (key: string) => named.some((each) => each === key || key.startsWith(`${each}.`));
  return Object.entries(script.arguments).flatMap(([key, text]) => {
    const target = renamed[key] ?? key;
    if (isNamed(key) || isNamed(target)) return [];
    if (isOpen(text)) return [key];
    const value = parseYaml(text);
    const isKept = JSON.stringify(readKey(config, target)) === JSON.stringify(value);
    const isGiven = key in given && given[key] === value;
    const isFactor = script.arguments["data.train_batch_size"] === "0" && factors.includes(key);
    return isKept || isGiven || isFactor ? [] : [key];
  });
}

const scripts = listVerlScripts();
const isForSft = ({ path }: VerlScript) => path.startsWith("examples/sft/");
const byVersion = (version: VerlScript["version"]) => scripts.filter((script) => script.version === version);
/** A script's value of a key, else that of its base config. */
const say = ({ arguments: own, configName }: VerlScript, key: string) =>
  own[key] ?? (configName === null ? undefined : verlBaseConfigs[configName]?.[key]);

describe("verl's example scripts", () => {
  it("are as many as the page counts", () => {
    expect(["v0.7.0", "v0.9", "async"].map((version) => byVersion(version as VerlScript["version"]).length)).toEqual([
      60, 32, 39,
    ]);
    expect(scripts.filter(isForSft)).toHaveLength(2);
  });

  it.each(scripts.filter(isForSft).map((script) => [script.path, script] as const))(
    "%s is for cria sft",
    (_, script) => {
      expect(() => convert(script)).toThrow(expect.objectContaining({ code: "config/not-supported" }));
    },
  );

  const trained = scripts.filter((script) => !isForSft(script));
  it.each(trained.map((script) => [`${script.version} ${script.path}`, script] as const))("%s", (_, script) => {
    const conversion = convert(script);
    const { config, toFillIn, verlDefaults } = conversion;
    expect(findLost(script, conversion)).toEqual([]);
    const parsed = checkConfig(trainConfigSchema, structuredClone(config), script.path);
    // Several turns where the script or its config says so, or names tools or an interaction, and where the config is not there.
    const turns =
      toFillIn.some(({ key }) => key.startsWith("--config-name")) ||
      String(say(script, `${multiTurn}.enable`)).toLowerCase() === "true" ||
      [`${multiTurn}.tool_config_path`, `${multiTurn}.interaction_config_path`].some((key) => say(script, key));
    expect(parsed.actor_rollout_ref.rollout.multi_turn.enable).toBe(turns);
    // A number that is still to fill in is not made up.
    for (const key of ["data.train_batch_size", `${rollout}.n`, miniBatch, "algorithm.adv_estimator"])
      if (toFillIn.some((entry) => entry.key === key)) expect(verlDefaults).not.toContain(key);
    if (script.arguments["data.train_batch_size"] === "0")
      expect(parsed.data.train_batch_size).toBe(
        factors.reduce((size, key) => size * Number(script.arguments[key] ?? 1), 1),
      );
    else if (say(script, "data.train_batch_size") === undefined)
      expect(readKey(config, "data.train_batch_size")).toBe(1024);
  });

  it("stand in docs/verl-scripts.md with the result of each (vitest -u writes it)", async () => {
    await expect(renderPage()).toMatchFileSnapshot(page);
  });
});

const columns = ["script", "turns", "tools", "batch", "mini-batch", "n", "estimator", "not supported", "to replace"];

/** Keys that name Python files in a script, and must name JavaScript here. */
const python = ["custom_reward_function.path", "data.custom_cls.path", "data.sampler.class_path"];

function makeRow(script: VerlScript): string[] {
  if (isForSft(script)) return [script.path, "", "", "", "", "", "supervised", "`cria sft` takes its config", ""];
  const { config, toFillIn, unsupported } = convert(script);
  const open = new Set(toFillIn.map(({ key }) => key));
  const show = (key: string) => {
    const text = say(script, key);
    if (open.has(key)) return text === undefined ? "open" : `\`${String(text).replace(/[{}]/g, "")}\``;
    return String(readKey(config, key));
  };
  const hasTurns = readKey(config, `${multiTurn}.enable`) !== false;
  const limit = ["max_assistant_turns", "max_user_turns"].map((key) => readKey(config, `${multiTurn}.${key}`));
  const counts = limit.filter((value) => typeof value === "number");
  const tools = ["tool_config_path", "interaction_config_path"].map((key) => say(script, `${multiTurn}.${key}`));
  const files = tools.filter((text) => text !== undefined).map((text) => `\`${basename(String(text))}\``);
  return [
    script.path,
    hasTurns ? (counts.length > 0 ? `at most ${Math.max(...counts)}` : "several") : "1",
    files.join(", "),
    show("data.train_batch_size") + (script.arguments["data.train_batch_size"] === "0" ? " (streamed)" : ""),
    show(miniBatch),
    show(`${rollout}.n`),
    show("algorithm.adv_estimator"),
    unsupported.map(({ key }) => `\`${key}\``).join(", "),
    toFillIn
      .filter(({ key }) => python.includes(key))
      .map(({ key }) => `\`${key}\``)
      .join(", "),
  ];
}

/** Number of updates between the policy that samples a step and the one that the step trains. */
function lagOf(script: VerlScript): number {
  return readLag(checkConfig(trainConfigSchema, convert(script).config, script.path));
}

function renderTable(version: VerlScript["version"]): string {
  const hasLag = version === "async";
  const head = hasLag ? [...columns, "lag"] : columns;
  const rows = byVersion(version).map((script) =>
    hasLag ? [...makeRow(script), String(lagOf(script))] : makeRow(script),
  );
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function renderPage(): string {
  return `# verl's example scripts

This page shows the result of \`cria config --from-verl\` for ${scripts.length} of verl's example scripts: ${byVersion("v0.7.0").length} of release 0.7.0, ${byVersion("v0.9").length} of verl 0.9 (Megatron's and NPUs' left
out), and ${byVersion("async").length} for its asynchronous trainers (with those). A test makes this page. It also checks that no argument is lost: each one is in the
config with its value, or is named under "to fill in", "not supported" or "set aside".

- **turns**: several where the script or the config of its \`--config-name\` says so, or where it names tools or an interaction.
- A number written as \`$name\` comes from a shell variable. The table is made from the scripts' arguments alone; converted from the
  script itself, the variable's assignment is read.
- **to replace**: Python functions, which must be JavaScript or TypeScript here. Every script also needs a GGUF file of its model.
- Sharding, memory and servers are set aside, as [Coming from verl](verl.md) says; they do not change what is learned.

## verl 0.7.0

${renderTable("v0.7.0")}

## verl 0.9

${renderTable("v0.9")}

## Asynchronous trainers

**lag**: the number of steps by which conversations are sampled ahead (\`trainer.v1.colocate_async.num_warmup_batches\`); with 0 each step samples
with the newest weights. \`data.train_batch_size: 0\` becomes the prompts between two synchronisations.
Of turns "several" without a number may also mean that a script's own config was not there: it is to fill in.

${renderTable("async")}
`;
}
