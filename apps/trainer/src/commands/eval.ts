import { resolve } from "node:path";
import { ConfigError } from "@cria/core";
import type { LlamaModel } from "@cria/engine";
import { type Checkpoint, findCheckpoint, openTraining, type TrainConfig, trainConfigSchema } from "@cria/trainer";
import {
  checkArgument,
  checkTrainPaths,
  type FetchAddressesOptions,
  fetchModel,
  fetchTrainAddresses,
  listEngines,
  loadConfiguredModel,
  readSuccess,
  restoreEngines,
  runValidation,
} from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { restoreModel } from "../export/restore-model.js";
import { printValidation } from "../terminal/print-validation.js";
import { formatCount, formatSeconds } from "../terminal/progress.js";
import { showEvents } from "../terminal/show-events.js";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config; uses its data.val_files and val_kwargs", required: true },
  overrides: {
    type: "positional",
    description: "Any number of key.path=value, for example actor_rollout_ref.rollout.val_kwargs.n=8",
    required: false,
  },
  checkpoint: { type: "string", description: "A checkpoint global_step_<N>, or a run folder: its newest" },
  role: {
    type: "string",
    description:
      "The role whose adapter plays all roles, of a checkpoint with one for each (default: each plays its own)",
  },
  adapter: { type: "string", description: "A LoRA adapter (GGUF) on the config's model" },
  model: {
    type: "string",
    description: "A whole model instead of the config's: a GGUF or an address, hf:<owner>/<model>:<quantisation>",
  },
  out: { type: "string", description: "File for the conversations (default: eval.jsonl here)" },
  ...commonArgs,
} as const;

export const evalCommand = defineCommand({
  meta: { name: "eval", description: "Measure the held-out success of a model, an adapter or a checkpoint" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const loaded = readConfig(trainConfigSchema, given.config, given._.slice(1).map(String));
      const { folder } = loaded;
      const config = leaveTrainingOut(loaded.values);
      const without = ["data.train_files", ...(given.model === undefined ? [] : ["actor_rollout_ref.model.path"])];
      checkTrainPaths(loaded, without);
      const report = showEvents({ silent: given.json });
      await fetchTrainAddresses(config, { report, signal }, without);
      const policy = await openPolicy(config, folder, given, { report, signal });
      // The training disposes of the policy with everything else.
      const training = await openTraining(config, folder, { engine: policy.engine, signal, report });
      try {
        if (policy.checkpoint) await restoreEngines(policy.checkpoint, listEngines(training));
        const file = resolve(given.out ?? "eval.jsonl");
        const result = await runValidation(training, { step: policy.step ?? 0, file, report });
        const { failed, metrics, seconds, tokens, trajectories } = result!;
        const success = readSuccess(result!, `the evaluation of ${policy.name}`);
        const summary = { policy: policy.name, step: policy.step, success, failed, metrics, seconds, tokens };
        if (given.json) return console.log(JSON.stringify({ ...summary, trajectories: trajectories.length, file }));
        const judged = trajectories.length - failed;
        const left = failed > 0 ? `; ${failed} more failed and do not count` : "";
        console.log(`${policy.name}: success ${success.toFixed(4)} on ${judged} conversations${left}`);
        printValidation(metrics);
        console.log(`${formatSeconds(seconds)}, ${formatCount(tokens / seconds)} tokens/s; conversations: ${file}`);
      } finally {
        await training.dispose();
      }
    }),
});

/** Leaves out training rows, which may be large or missing, reference policy, teachers and critic. */
function leaveTrainingOut(config: TrainConfig): TrainConfig {
  const { val_files } = config.data;
  if (!val_files) {
    throw new ConfigError("is missing", {
      code: "config/no-rows",
      subject: "data.val_files",
      expected: "files of held-out rows",
      received: "null",
      remedy: "add data.val_files=<file> to the command, or to the config",
    });
  }
  config.data.train_files = val_files;
  config.data.train_max_samples = -1;
  config.actor_rollout_ref.actor.use_kl_loss = false;
  config.algorithm.use_kl_in_reward = false;
  config.algorithm.adv_estimator = "grpo";
  config.distillation.enabled = false;
  return config;
}

interface Policy {
  engine: LlamaModel;
  name: string;
  /**
   * Step of the checkpoint; it determines the random draws, so that the numbers equal those of the training's own
   * validation.
   */
  step: number | null;
  /** Checkpoint of which each role gets its adapter; null: the engine has its weights. */
  checkpoint: Checkpoint | null;
}

async function openPolicy(
  config: TrainConfig,
  folder: string,
  given: { checkpoint?: string; role?: string; adapter?: string; model?: string },
  options: FetchAddressesOptions,
): Promise<Policy> {
  const named = (["checkpoint", "adapter", "model"] as const).filter((name) => given[name] !== undefined);
  if (named.length > 1) {
    throw new ConfigError("exclude each other", {
      code: "config/bad-argument",
      subject: named.map((name) => `--${name}`).join(" and "),
      expected: "one of them, or none for the config's model",
      received: named.length === 2 ? "both" : "all of them",
      remedy: "leave out all but one",
    });
  }
  if (given.checkpoint !== undefined) {
    const checkpoint = await findCheckpoint(checkArgument("--checkpoint", given.checkpoint), (text) =>
      process.stderr.write(`${text}\n`),
    );
    const { model } = config.actor_rollout_ref;
    const found = { name: checkpoint.path, step: checkpoint.step };
    if (model.lora_roles && given.role === undefined)
      return { ...found, engine: await loadConfiguredModel(config, folder), checkpoint };
    model.lora_roles = null;
    const engine = await restoreModel(loadConfiguredModel(config, folder), checkpoint, given.role ?? null);
    return { ...found, engine, checkpoint: null };
  }
  if (given.role !== undefined)
    throw new ConfigError("names an adapter of a checkpoint", {
      code: "config/bad-argument",
      subject: "--role",
      expected: "a checkpoint or run folder in --checkpoint",
      received: "none",
    });
  // One policy plays all roles.
  config.actor_rollout_ref.model.lora_roles = null;
  // The KV cache as in training, so that the numbers are equal too.
  const fixed = { trainable: "none", kvType: "f32" } as const;
  const adapter = given.adapter ?? null;
  if (given.model !== undefined || adapter !== null) {
    const fetch = (option: string, path: string) => fetchModel(checkArgument(option, path), options);
    const path = given.model === undefined ? {} : { path: await fetch("--model", given.model) };
    const lora = adapter === null ? null : { path: await fetch("--adapter", adapter) };
    const engine = await loadConfiguredModel(config, folder, { ...fixed, ...path, lora });
    return { engine, name: given.model ?? adapter!, step: null, checkpoint: null };
  }
  const { lora_adapter_path, path } = config.actor_rollout_ref.model;
  const untrained = lora_adapter_path === null ? { lora: null } : {};
  const engine = await loadConfiguredModel(config, folder, { ...fixed, ...untrained });
  return { engine, name: path, step: null, checkpoint: null };
}
