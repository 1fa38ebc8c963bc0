import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { OptimizerOptions, ScoreOptions, TrainSequence } from "@cria/core";
import type { TinyModels } from "@cria/engine/testing";
import { checkConfig } from "../config/check-config.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import type { RunEvent } from "../events.js";
import { openTraining, type Training } from "../run/training.js";
import type { Registries } from "../user-code/registries.js";
import { watchEngine } from "./watch-calls.js";

/** Calls of a training step to the engine. */
export interface EngineCalls {
  scores: (ScoreOptions & { count: number })[];
  batches: TrainSequence[][];
  /** Optimizer options of each update. */
  optimizers: OptimizerOptions[];
}

export interface TinyTraining extends Training, EngineCalls {
  folder: string;
  /** Reported events. */
  events: RunEvent[];
}

export interface TinyTrainingOptions {
  /** Body of the reward function; it sees `text` (what was sampled) and `truth`. */
  reward?: string;
  /** One user message each. */
  prompts?: readonly string[];
  /**
   * Merged into the config, section by section. Metrics of updates are off by default, because tests count the
   * engine's calls.
   */
  model?: Record<string, unknown>;
  actor?: Record<string, unknown>;
  rollout?: Record<string, unknown>;
  data?: Record<string, unknown>;
  algorithm?: Record<string, unknown>;
  distillation?: Record<string, unknown>;
  critic?: Record<string, unknown>;
  trainer?: Record<string, unknown>;
  rewardModel?: Record<string, unknown>;
  customRewardFunction?: Record<string, unknown>;
  /** Merged into each row, by its place among them. */
  row?: Record<string, unknown> | ((index: number) => Record<string, unknown>);
  /** Registries of the names in the config; default: built-in entries. */
  registries?: Registries;
  /** Most tokens of a conversation, prompt included; default 56. */
  contextSize?: number;
  /** Most conversations at a time; default 16. */
  maxSequences?: number;
  /** Threads of the engine; default 1. */
  threads?: number;
  signal?: AbortSignal;
}

/** Share of sampled characters that are ASCII: a reward that a random model earns half of, and can learn. */
export const ASCII_SHARE =
  "return [...text].filter((c) => c.charCodeAt(0) < 128).length / Math.max(1, [...text].length);";

let count = 0;

/** Writes rows, reward and config of a run whose policy is a random model of a few thousand weights. */
export async function writeTinyRun(
  models: TinyModels,
  options: TinyTrainingOptions = {},
): Promise<{ config: TrainConfig; folder: string }> {
  const { reward = ASCII_SHARE, prompts = ["a", "bb", "ccc"] } = options;
  const folder = join(models.folder, `run-${count++}`);
  mkdirSync(folder);
  const rows = prompts.map((content, index) => ({
    data_source: "test",
    prompt: [{ role: "user", content }],
    reward_model: { style: "rule", ground_truth: content },
    extra_info: { index },
    ...(typeof options.row === "function" ? options.row(index) : options.row),
  }));
  writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(join(folder, "reward.mjs"), `export function computeScore(source, text, truth) { ${reward} }\n`);
  const raw = {
    actor_rollout_ref: {
      model: {
        path: await models.write({ seed: 5, embeddingScale: 0.25 }),
        lora_rank: 4,
        lora_alpha: 8,
        ...options.model,
      },
      actor: { optim: { lr: 1e-2 }, ppo_mini_batch_size: prompts.length, update_kl_ratio: 0, ...options.actor },
      rollout: { n: 4, prompt_length: 48, response_length: 8, max_num_seqs: 16, seed: 1, ...options.rollout },
    },
    data: {
      train_files: "rows.jsonl",
      train_batch_size: prompts.length,
      max_prompt_length: 48,
      max_response_length: 8,
      ...options.data,
    },
    algorithm: options.algorithm ?? {},
    distillation: options.distillation ?? {},
    critic: options.critic ?? {},
    reward_model: options.rewardModel ?? {},
    custom_reward_function: { path: "reward.mjs", ...options.customRewardFunction },
    trainer: { default_local_dir: folder, threads: 1, ...options.trainer },
  };
  // Also as a file, for the command line. JSON is YAML.
  writeFileSync(join(folder, "config.yaml"), JSON.stringify(raw));
  return { config: checkConfig(trainConfigSchema, raw, "test"), folder };
}

/** A training on such a run, with the engine's calls recorded. */
export async function openTinyTraining(models: TinyModels, options: TinyTrainingOptions = {}): Promise<TinyTraining> {
  const { config, folder } = await writeTinyRun(models, options);
  const { path, lora_rank, lora_alpha } = config.actor_rollout_ref.model;
  const lora = { rank: lora_rank, alpha: lora_alpha ?? undefined };
  const model = await models.load(
    {},
    {
      path,
      ...(lora_rank > 0 ? { lora } : { trainable: "full" }),
      contextSize: options.contextSize ?? 56,
      maxSequences: options.maxSequences ?? 16,
      kvType: config.actor_rollout_ref.rollout.kv_cache_dtype,
      ...(options.threads === undefined ? {} : { threads: options.threads }),
      seed: 1,
    },
  );
  const calls: EngineCalls = { scores: [], batches: [], optimizers: [] };
  const engine = watchEngine(model, {
    score: (sequences, given) => void calls.scores.push({ ...given, count: sequences.length }),
    train: (batch, _, optimizer) => {
      calls.batches.push([...batch]);
      calls.optimizers.push(optimizer!);
    },
  });
  const events: RunEvent[] = [];
  const report = (event: RunEvent) => void events.push(event);
  const { signal, registries } = options;
  const training = await openTraining(config, folder, { engine, signal, registries, report });
  return { ...training, ...calls, folder, events };
}
