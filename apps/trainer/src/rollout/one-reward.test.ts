import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { aggregateReward } from "@cria/algorithms";
import { defaultRewardAggregation } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import { runRollouts } from "@cria/rollout";
import { placeAsEarned } from "@cria/rollout/internal";
import { loadConfig, openTraining, runTraining, type Training, trainConfigSchema } from "@cria/trainer";
import { dumpTrajectories } from "@cria/trainer/internal";
import { afterAll, beforeAll, expect, it } from "vitest";
import { summarizeRollouts } from "./summarize-rollouts.js";

interface Line {
  reward: number;
  score: number;
  success: boolean;
  rewards: Record<string, number | null>;
  token_level_rewards: number[];
  response_mask: number[];
}

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const readLines = <T>(file: string) =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as T);

let folder: string;
let training: Training;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cria-one-reward-"));
  const file = join(import.meta.dirname, "..", "..", "..", "..", "examples", "calculator", "config.yaml");
  const { values, folder: configFolder } = loadConfig(trainConfigSchema, file, [
    "reward_model.token_reward.tool_call_bonus=0.5",
    "reward_model.trajectory_reward.length_penalty=-0.01",
    "actor_rollout_ref.rollout.n=4",
    "actor_rollout_ref.rollout.val_kwargs.do_sample=true",
    "data.train_batch_size=4",
    "data.val_max_samples=8",
    "trainer.total_training_steps=1",
    "trainer.val_before_train=false",
    "trainer.threads=1",
    `trainer.default_local_dir=${folder}`,
  ]);
  training = await openTraining(values, configFolder);
});
afterAll(async () => {
  await training.dispose();
  await rm(folder, { recursive: true });
});

it("training, dump, metrics, validation and `cria rollout` show the same rewards: part by part, token by token", async () => {
  const { path } = await runTraining(training, {
    configFolder: folder,
    trackers: [],
  });
  const [metrics] = readLines<Record<string, number>>(join(path, "metrics.jsonl"));
  const trained = readLines<Line>(join(path, "rollouts", "1.jsonl"));
  const validated = readLines<Line>(join(path, "validation", "1.jsonl"));
  expect([trained.length, validated.length]).toEqual([16, 8]);
  for (const line of [...trained, ...validated]) {
    const { outcome, length, tools, turns } = line.rewards as Record<string, number>;
    expect(line.reward).toBeCloseTo(outcome! + length! + tools! + turns!, 12);
    expect(line.reward).toBe(line.token_level_rewards.reduce((a, b) => a + b, 0));
    expect(outcome).toBe(line.score);
    expect(line.success).toBe(line.score > 0);
    expect(length).toBeCloseTo(-0.01 * line.response_mask.reduce((a, b) => a + b, 0), 12);
  }
  // The embedded policy makes good and bad calls of its tool, which the bonus tells apart.
  expect(new Set(trained.map((line) => line.rewards.tools)).size).toBeGreaterThan(1);
  const reward = mean(trained.map((line) => line.reward));
  for (const name of ["critic/score/mean", "critic/rewards/mean"]) expect(metrics![name]).toBeCloseTo(reward, 12);
  expect(metrics!["reward/score/mean"]).toBeCloseTo(mean(trained.map((line) => line.score)), 12);
  expect(metrics!["reward/tools/mean"]).toBeCloseTo(mean(trained.map((line) => line.rewards.tools!)), 12);
  expect(reward).not.toBeCloseTo(metrics!["reward/score/mean"]!, 3);
  const shown = Object.entries(metrics!).find(([name]) => /^val-aux\/.*\/reward\/mean@1$/.test(name));
  expect(shown?.[1]).toBeCloseTo(mean(validated.map((line) => line.reward)), 12);

  const rows = training.trainRows.slice(0, 4);
  const options = {
    ...training.environment,
    tokenizer: training.policy.tokenizer,
    seed: 0,
    n: 2,
    temperature: 1,
    topP: 1,
    topK: 0,
    step: 2,
  };
  const trajectories = await runRollouts(training.policy.engine, rows, options);
  const lines = dumpTrajectories(training.policy.engine, training.environment, trajectories, {
    step: null,
    rows,
    times: true,
  });
  const summary = summarizeRollouts(trajectories, 1);
  expect(summary.reward!.mean).toBeCloseTo(
    mean(lines.map((line) => line.token_level_rewards.reduce((a, b) => a + b, 0))),
    12,
  );
});

it("without an aggregator rewards are placed by the defaults of aggregateReward", async () => {
  const rows = training.trainRows.slice(0, 2);
  const shared = {
    ...training.environment,
    tokenizer: training.policy.tokenizer,
    seed: 0,
    n: 2,
    temperature: 1,
    topP: 1,
    topK: 0,
    step: 3,
  };
  const placed = async (aggregate: typeof placeAsEarned | undefined): Promise<Trajectory["rewards"][]> =>
    (await runRollouts(training.policy.engine, rows, { ...shared, aggregate })).map((t) => t.rewards);
  expect(await placed(undefined)).toEqual(await placed((earned) => aggregateReward(earned, defaultRewardAggregation)));
  const earned = {
    responseMask: Uint8Array.of(0, 1, 1, 0, 1, 0),
    score: 1,
    success: true,
    toolRewards: [{ value: 2, tokenIndex: 3 }],
    turnScores: [{ value: 4, tokenIndex: 0 }],
    toolCalls: [],
    toolCallMask: new Uint8Array(6),
  };
  expect(placeAsEarned(earned)).toEqual(aggregateReward(earned, defaultRewardAggregation));
});
