import { join } from "node:path";
import { estimateGrpo } from "@cria/algorithms";
import type { TrainSequence } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import { afterAll, describe, expect, it } from "vitest";
import type { RunEvent } from "../events.js";
import { openReplay } from "../replay/open-replay.js";
import { runTrainingStep } from "../step/training-step.js";
import { defineTask } from "../task/task.js";
import { openFakeTraining } from "../testing/fake-training.js";
import { hashSync } from "../testing/hash-sync.js";
import { playTask } from "../testing/play-task.js";
import { openTinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { runTraining } from "./run-training.js";
import { TrainingInterrupted } from "./steps.js";
import { train } from "./train.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let count = 0;
const STEPS = 4;
const prompts = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"];
/** Number of conversations by prompt; null: the run's number, 4. */
const NUMBERS = [2, null, 5, 1, 3, 4];
const ragged = { row: (index: number) => ({ __rollout_n__: NUMBERS[index] }) };

const options = (more: TinyTrainingOptions = {}): TinyTrainingOptions => ({
  prompts,
  ...more,
  data: { train_batch_size: 3, ...more.data },
  actor: { ppo_mini_batch_size: 2, ...more.actor },
  trainer: { total_training_steps: STEPS, val_before_train: false, ...more.trainer },
});

async function trainIt(more: TinyTrainingOptions = {}) {
  const training = await openTinyTraining(models, options(more));
  try {
    const { weights, steps } = await runTraining(training, { configFolder: training.folder });
    return { sha: hashSync(weights), steps, training };
  } finally {
    await training.dispose();
  }
}

/** Takes one step over all rows. */
async function takeStep(more: TinyTrainingOptions) {
  const training = await openTinyTraining(models, options(more));
  try {
    const result = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    return { ...result, training };
  } finally {
    await training.dispose();
  }
}

const lagged = { v1: { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 2 } } };

describe("rows that say how many conversations are held of them", () => {
  it.each<[string, TinyTrainingOptions]>([
    ["a training in turns", {}],
    ["a lag", { trainer: lagged }],
    ["filter_groups", { algorithm: { filter_groups: { enable: true, max_num_gen_batches: 2 } } }],
    ["remax", { algorithm: { adv_estimator: "remax" } }],
    ["replayed groups", { algorithm: { replay: { share: 1, max_age: 2 } } }],
  ])("with the run's number have its bits: %s", async (_, more) => {
    const plain = await trainIt(more);
    expect((await trainIt({ ...more, row: { __rollout_n__: 4 } })).sha).toBe(plain.sha);
    expect((await trainIt({ ...more, row: { __rollout_n__: 4 }, rollout: { n: 2 } })).sha).toBe(plain.sha);
    expect((await trainIt({ ...more, ...ragged })).sha).not.toBe(plain.sha);
  });

  it("are groups of their own size: advantages, mini-batches by prompts, metrics", async () => {
    const { trajectories, advantages, metrics, training } = await takeStep({
      ...ragged,
      actor: { ppo_mini_batch_size: 2, skip_zero_advantage: false },
    });
    const sizes = prompts.map((_, row) => trajectories.filter(({ rowIndex }) => rowIndex === row).length);
    expect(sizes).toEqual([2, 4, 5, 1, 3, 4]);
    expect(metrics).toMatchObject({
      "rollout/samples/mean": 19 / 6,
      "rollout/samples/max": 5,
      "rollout/samples/min": 1,
    });
    // Each mini-batch has two prompts, however many conversations they have.
    const byTokens = new Map(trajectories.map((t) => [t.tokenIds.join(), t.uid]));
    const uidOf = ({ tokenIds }: TrainSequence) => byTokens.get(Array.from(tokenIds).join())!;
    const batches = training.batches.map((batch) => batch.map(uidOf));
    expect(batches.map((uids) => new Set(uids).size)).toEqual([2, 2, 2]);
    // Estimating each group alone gives the same advantages.
    for (const uid of new Set(trajectories.map((t) => t.uid))) {
      const indices = [...trajectories.keys()].filter((i) => trajectories[i]!.uid === uid);
      const alone = estimateGrpo({
        tokenLevelRewards: Float32Array.from(indices, (i) => trajectories[i]!.reward),
        responseMask: new Uint8Array(indices.length).fill(1),
        offsets: Int32Array.from({ length: indices.length + 1 }, (_, i) => i),
        groups: indices.map(() => uid),
      });
      indices.forEach((i, k) => {
        expect(advantages[i]).toBeCloseTo(alone.advantages[k]!, 5);
      });
    }
  });

  it("have one greedy baseline each in remax", async () => {
    const overrides = ["algorithm.adv_estimator=remax"];
    const scripted = await openFakeTraining(models, { ...ragged, prompts, overrides, reply: () => "a" });
    await runTrainingStep(scripted, { rows: scripted.trainRows, step: 1, epoch: 0 });
    await scripted.dispose();
    expect(scripted.calls.generate.filter(({ temperature }) => temperature === 0)).toHaveLength(prompts.length);
    expect(scripted.calls.generate).toHaveLength(19 + prompts.length);
    const { trajectories, advantages } = await takeStep({ ...ragged, algorithm: { adv_estimator: "remax" } });
    for (const uid of new Set(trajectories.map((t) => t.uid))) {
      const baselines = trajectories.flatMap((t, i) => (t.uid === uid ? [t.reward - advantages[i]!] : []));
      for (const baseline of baselines) expect(baseline).toBeCloseTo(baselines[0]!, 5);
    }
  });

  it("do not depend on places, and go on from a checkpoint to equal bits", async () => {
    const whole = await trainIt({ ...ragged, trainer: lagged });
    expect((await trainIt({ ...ragged, trainer: lagged, rollout: { max_num_seqs: 3 } })).sha).toBe(whole.sha);
    const controller = new AbortController();
    const more = { ...ragged, trainer: lagged };
    const interrupted = await openTinyTraining(models, { ...options(more), signal: controller.signal });
    const afterStep = async () => {
      if (interrupted.policy.updates === 2) controller.abort(new Error("interrupted"));
    };
    await expect(runTraining(interrupted, { configFolder: interrupted.folder, afterStep })).rejects.toThrow(
      TrainingInterrupted,
    );
    await interrupted.dispose();
    const again = await openTinyTraining(models, options(more));
    again.config.trainer.default_local_dir = interrupted.config.trainer.default_local_dir;
    again.config.actor_rollout_ref.model.path = interrupted.config.actor_rollout_ref.model.path;
    const { weights } = await runTraining(again, { configFolder: again.folder });
    await again.dispose();
    expect(hashSync(weights)).toBe(whole.sha);
  });

  it("are dumped and replayed conversation by conversation, in validation too", async () => {
    const more = { ...ragged, data: { train_batch_size: 6, val_files: "rows.jsonl" } };
    const { training, steps } = await trainIt({
      ...more,
      rollout: { val_kwargs: { n: 2, do_sample: true } },
      trainer: { total_training_steps: 1, test_freq: 1, save_freq: 1, val_before_train: true },
    });
    const { default_local_dir, project_name, experiment_name } = training.config.trainer;
    const path = join(default_local_dir, project_name, experiment_name);
    const readLines = async (name: string) => {
      const lines: DumpLine[] = [];
      for await (const line of readDump(join(path, name))) lines.push(line);
      return lines;
    };
    const lines = await readLines("rollouts/1.jsonl");
    const count = (of: typeof lines) => prompts.map((_, row) => of.filter((line) => line.row === row).length);
    expect(count(lines)).toEqual([2, 4, 5, 1, 3, 4]);
    expect(count(await readLines("validation/0.jsonl"))).toEqual([2, 2, 5, 1, 3, 4]);
    // Each statistic is averaged over the prompts that have it.
    const core = Object.keys(steps[0]!).filter((name) => name.startsWith("val-core/test/reward"));
    expect(core).toContain("val-core/test/reward/mean@5");
    const replay = await openReplay(path);
    try {
      const results = await replay.replay(lines);
      expect(results.map(({ equal }) => equal)).toEqual(lines.map(() => true));
    } finally {
      await replay.close();
    }
  });
});

describe("samples of a task", () => {
  const rows = [
    { question: "a", hard: true },
    { question: "b", hard: false },
  ];
  const reward = () => 1;

  it("say it by row", async () => {
    const task = defineTask({ rows, reward, samples: (row) => (row.hard ? 7 : undefined) });
    expect((await task.load()).map(({ samples }) => samples)).toEqual([7, undefined]);
    const columns = defineTask({ rows: rows.map((row, i) => ({ ...row, __rollout_n__: i + 1 })), reward });
    expect((await columns.load()).map(({ samples }) => samples)).toEqual([1, 2]);
    // Rows that another task loaded keep their number.
    const again = defineTask({ rows: await task.load(), reward });
    expect((await again.load()).map(({ samples }) => samples)).toEqual([7, undefined]);
    expect((await playTask(task, ["hello"])).score).toBe(1);
  });

  it.each([0, 2.5, 5000, "3", null])("refuses %s, naming row and value", async (value) => {
    const task = defineTask({ rows, reward, samples: (row) => (row.hard ? 2 : (value as number)) });
    await expect(task.load()).rejects.toMatchObject({
      code: "data/bad-row",
      subject: "defineTask: samples of rows[1]",
      received: JSON.stringify(value),
    });
  });

  it("of one conversation are warned of where advantages compare, and refused by grpo_passk", async () => {
    const model = await models.write({ seed: 5, embeddingScale: 0.25 });
    const warningsOf = async (samples: (row: { hard: boolean }) => number, estimator: string, n = 2) => {
      const task = defineTask({ rows, reward, samples, maxPromptLength: 48, maxResponseLength: 8 });
      const warnings: string[] = [];
      const report = (event: RunEvent) => void (event.type === "warning" && warnings.push(event.text));
      const folder = join(models.folder, `warned-${count++}`);
      const config = { algorithm: { adv_estimator: estimator } };
      await train({ model, task, folder, n, steps: 1, batchSize: 2, threads: 1, report, config });
      return warnings.filter((text) => text.includes("__rollout_n__"));
    };
    expect(await warningsOf(({ hard }) => (hard ? 2 : 1), "grpo")).toEqual([
      expect.stringMatching(/^1 of 2 rows .*"task\/0:1"/),
    ]);
    expect(await warningsOf(() => 2, "grpo")).toEqual([]);
    expect(await warningsOf(() => 1, "reinforce_plus_plus")).toEqual([]);
    await expect(warningsOf(({ hard }) => (hard ? 2 : 1), "grpo_passk")).rejects.toMatchObject({
      code: "config/bad-value",
      subject: expect.stringContaining("row 1 (rows[1])"),
    });
  });
});
