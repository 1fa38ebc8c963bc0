// A skill, then a bad habit on top of it, both by supervised training; then reinforcement learning.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openTraining, runSft, train, validate } from "cria";
import { loadConfig, sftConfigSchema, trainConfigSchema } from "cria/config";

/** Mean rewards of held-out pictures, by the likeliest tokens and by sampled ones. */
export interface Skill {
  greedy: number;
  sampled: number;
}

export interface Learned {
  before: Skill;
  after: Skill;
  /** Mean reward of each step's conversations. */
  rewards: number[];
  seconds: { stages: number; train: number };
}

export interface LearnOptions {
  /** Seed of the habit's batches, of sampling and of the order of the rows. */
  seed?: number;
  /** Steps of each supervised stage, and of the training; default: those of the configs. */
  steps?: { stage?: number; train?: number };
  /** Called with each step's mean reward. */
  onStep?: (step: number, reward: number) => void;
}

/**
 * Trains by a folder's `sft-<n>.yaml`, one after the other, and then by its `config.yaml`; all write into its `build`.
 */
export async function learn(folder: string, { seed = 1, steps = {}, onStep }: LearnOptions = {}): Promise<Learned> {
  const build = join(folder, "build");
  const settings = (count: number | undefined) => [
    `trainer.default_local_dir=${join(build, "runs")}`,
    "trainer.logger=[file]",
    "trainer.resume_mode=disable",
    ...(count === undefined ? [] : [`trainer.total_training_steps=${count}`]),
  ];
  let began = performance.now();
  const lap = () => {
    const seconds = (performance.now() - began) / 1000;
    began = performance.now();
    return seconds;
  };

  let model: string | undefined;
  const stages = readdirSync(folder).filter((name) => /^sft-\d+\.yaml$/.test(name));
  for (const stage of stages.sort()) {
    const output = join(build, `${stage.replace(".yaml", "")}-${seed}.gguf`);
    const { values, folder: from } = loadConfig(sftConfigSchema, join(folder, stage), [
      ...settings(steps.stage),
      ...(model === undefined ? [] : [`model.path=${model}`]),
      `trainer.seed=${seed}`,
      `trainer.experiment_name=${stage.replace(".yaml", "")}-${seed}`,
      `trainer.output_path=${output}`,
    ]);
    await runSft(values, from);
    model = output;
  }
  const stageSeconds = lap();

  const overrides = [
    ...settings(steps.train),
    `actor_rollout_ref.model.path=${model}`,
    `actor_rollout_ref.rollout.seed=${seed}`,
    `data.seed=${seed}`,
    `trainer.experiment_name=grpo-${seed}`,
    "trainer.val_before_train=false",
    "trainer.rollout_data_detail=full",
  ];
  const config = join(folder, "config.yaml");
  const before = await measure(config, overrides);
  const rewards: number[] = [];
  lap();
  const { values, folder: configFolder } = loadConfig(trainConfigSchema, config, overrides);
  const run = train({ config: values, configFolder });
  for await (const { step, reward } of run) {
    rewards.push(reward ?? 0);
    onStep?.(step, reward ?? 0);
  }
  const { model: trained } = await run;
  const trainSeconds = lap();
  const after = await measure(config, [...overrides, `actor_rollout_ref.model.path=${trained}`]);
  return { before, after, rewards, seconds: { stages: stageSeconds, train: trainSeconds } };
}

/** Measures a policy on the held-out pictures. */
async function measure(config: string, overrides: readonly string[]): Promise<Skill> {
  const { values, folder } = loadConfig(trainConfigSchema, config, [...overrides]);
  const training = await openTraining(values, folder);
  try {
    const mean = async (temperature: number) => {
      const { trajectories } = await validate(training, { temperature, step: 0 });
      return trajectories.reduce((sum, { reward }) => sum + reward, 0) / trajectories.length;
    };
    return { greedy: await mean(0), sampled: await mean(1) };
  } finally {
    await training.dispose();
  }
}
