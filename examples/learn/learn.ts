// Measures a published model on held-out rows: untouched, after demonstrations, and after reinforcement learning.
import { join } from "node:path";
import { openTraining, runSft, train, validate } from "cria";
import { loadConfig, sftConfigSchema, trainConfigSchema } from "cria/config";
import type { Success } from "./success.js";

export interface Learned {
  untouched: Success;
  sft: Success;
  rl: Success;
  /** Share of each step's conversations that succeeded. */
  successes: number[];
  seconds: { measure: number; sft: number; rl: number };
  /** The most memory that the process had, in bytes. */
  peakMemory: number;
}

export interface LearnOptions {
  /** Seed of the order of the rows, of sampling, and of a new adapter's values. */
  seed?: number;
  /** A file that replaces the configs' model. */
  model?: string;
  /** Folder of runs and adapters; default: the folder's `build`. */
  output?: string;
  steps?: { sft?: number; rl?: number };
  /** More settings of both configs, as `key=value`. */
  overrides?: { sft?: readonly string[]; rl?: readonly string[] };
  onMeasured?: (stage: "untouched" | "sft" | "rl", success: Success) => void;
  /** Called with the share of each step's conversations that succeeded. */
  onStep?: (step: number, success: number) => void;
}

/** Trains by a folder's `sft.yaml` and then, from the adapter that this makes, by its `config.yaml`. */
export async function learn(folder: string, options: LearnOptions = {}): Promise<Learned> {
  const { seed = 1, model, steps = {}, overrides = {}, onMeasured, onStep } = options;
  const output = options.output ?? join(folder, "build");
  const settings = (name: string, count: number | undefined) => [
    `trainer.default_local_dir=${join(output, "runs")}`,
    `trainer.experiment_name=${name}-${seed}`,
    "trainer.logger=[file]",
    "trainer.resume_mode=disable",
    ...(count === undefined ? [] : [`trainer.total_training_steps=${count}`]),
  ];
  const seconds = { measure: 0, sft: 0, rl: 0 };
  const timed = async <T>(what: keyof typeof seconds, work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await work();
    seconds[what] += (performance.now() - began) / 1000;
    return result;
  };

  const adapter = join(output, `sft-${seed}.gguf`);
  const rlSettings = [
    ...settings("rl", steps.rl),
    ...(model === undefined ? [] : [`actor_rollout_ref.model.path=${model}`]),
    `actor_rollout_ref.rollout.seed=${seed}`,
    `data.seed=${seed}`,
    ...(overrides.rl ?? []),
  ];
  const measureWith = async (stage: "untouched" | "sft" | "rl", path: string | null) => {
    const success = await timed("measure", () =>
      measure(join(folder, "config.yaml"), [...rlSettings, `actor_rollout_ref.model.lora_adapter_path=${path}`]),
    );
    onMeasured?.(stage, success);
    return success;
  };

  const untouched = await measureWith("untouched", null);
  await timed("sft", async () => {
    const { values, folder: from } = loadConfig(sftConfigSchema, join(folder, "sft.yaml"), [
      ...settings("sft", steps.sft),
      ...(model === undefined ? [] : [`model.path=${model}`]),
      `trainer.seed=${seed}`,
      `trainer.output_path=${adapter}`,
      ...(overrides.sft ?? []),
    ]);
    await runSft(values, from);
  });
  const sft = await measureWith("sft", adapter);

  const successes: number[] = [];
  const trained = await timed("rl", async () => {
    const { values, folder: configFolder } = loadConfig(trainConfigSchema, join(folder, "config.yaml"), [
      ...rlSettings,
      `actor_rollout_ref.model.lora_adapter_path=${adapter}`,
      // It is measured separately.
      "data.val_files=null",
      "trainer.rollout_data_detail=full",
    ]);
    const run = train({ config: values, configFolder });
    for await (const { step, metrics } of run) {
      const success = metrics["reward_extra/acc/mean"] ?? 0;
      successes.push(success);
      onStep?.(step, success);
    }
    return run;
  });
  const rl = await measureWith("rl", trained.adapter);
  return { untouched, sft, rl, successes, seconds, peakMemory: process.resourceUsage().maxRSS * 1024 };
}

/** Measures a policy on the held-out rows, with the likeliest tokens. */
async function measure(config: string, overrides: readonly string[]): Promise<Success> {
  const { values, folder } = loadConfig(trainConfigSchema, config, [...overrides]);
  const training = await openTraining(values, folder);
  try {
    const { trajectories, failed } = await validate(training, { temperature: 0, step: 0 });
    if (failed > 0)
      throw new Error(`${failed} conversations failed: ${trajectories.find(({ error }) => error)!.error}`);
    const sources = new Map(training.valRows.map(({ uid, dataSource }) => [uid, dataSource]));
    const success: Success = {};
    for (const { uid, rewards } of trajectories) {
      const source = sources.get(uid)!;
      const { rows, success: mean } = success[source] ?? { rows: 0, success: 0 };
      success[source] = { rows: rows + 1, success: (mean * rows + (rewards.success ? 1 : 0)) / (rows + 1) };
    }
    return success;
  } finally {
    await training.dispose();
  }
}
