import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PolicyEngine } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { CheckpointStore } from "../checkpoints/checkpoint-store.js";
import { SavePoints } from "../checkpoints/save-points.js";
import { Policy } from "../policy/policy.js";
import { dropTimes } from "../testing/drop-times.js";
import { openTinyTraining, type TinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { runTraining } from "./run-training.js";
import { TrainingInterrupted } from "./steps.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const options: TinyTrainingOptions = {
  prompts: ["a", "bb", "ccc", "dddd"],
  data: { train_batch_size: 2, val_files: "rows.jsonl" },
  actor: { ppo_mini_batch_size: 1, old_log_prob: "separate" },
  // The controller's coefficient changes in the middle of a step.
  algorithm: { use_kl_in_reward: true, kl_ctrl: { type: "adaptive", kl_coef: 0.1, target_kl: 0.01, horizon: 20 } },
  trainer: { total_training_steps: 4, test_freq: 1, val_before_train: false },
};

const train = (opened: TinyTraining) => runTraining(opened, { configFolder: opened.folder, trackers: [] });

/** Opens the run again, as a new process would. */
async function reopen(opened: TinyTraining): Promise<TinyTraining> {
  const again = await openTinyTraining(models, options);
  again.config.trainer.default_local_dir = opened.config.trainer.default_local_dir;
  again.config.actor_rollout_ref.model.path = opened.config.actor_rollout_ref.model.path;
  return again;
}

const pathOf = ({ config }: TinyTraining) => join(config.trainer.default_local_dir, "cria", "default");

/** Reads a run's results: metrics and the adapter's bytes. */
function readRun(opened: TinyTraining) {
  const path = pathOf(opened);
  const lines = readFileSync(join(path, "metrics.jsonl"), "utf8").trim().split("\n");
  return {
    metrics: lines.map((line) => dropTimes(JSON.parse(line))),
    adapter: readFileSync(join(path, "adapter.gguf")).toString("base64"),
    rollouts: readdirSync(join(path, "rollouts")).sort(),
  };
}

async function interrupt(opened: TinyTraining): Promise<TrainingInterrupted> {
  const error = await train(opened).then(
    () => null,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(TrainingInterrupted);
  return error as TrainingInterrupted;
}

/** Aborts at the n-th call of an engine's method, before the call does anything. */
function abortAt(
  opened: TinyTraining,
  controller: AbortController,
  method: keyof PolicyEngine,
  n: number,
): TinyTraining {
  let calls = 0;
  const engine = new Proxy(opened.policy.engine, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (name === method && ++calls === n) controller.abort(new Error("enough"));
        return value.apply(target, args);
      };
    },
  });
  return { ...opened, policy: new Policy({ ...opened.policy, engine }) };
}

describe("a run that is interrupted goes on as if it never had been", () => {
  let whole: ReturnType<typeof readRun>;
  beforeAll(async () => {
    const opened = await openTinyTraining(models, options);
    await train(opened);
    whole = readRun(opened);
  });

  const cases: [
    string,
    (opened: TinyTraining, controller: AbortController) => TinyTraining,
    { step: number; lost: string },
  ][] = [
    [
      "while it rolls out: the step before is saved",
      // There are 2 prompts in a step and 4 in its validation.
      (opened, controller) => abortAt(opened, controller, "createSequence", 2 + 4 + 1),
      { step: 1, lost: "rollouts of step 2" },
    ],
    [
      "while it scores: the step before is saved",
      (opened, controller) => abortAt(opened, controller, "score", 3),
      { step: 2, lost: "rollouts of step 3" },
    ],
    [
      "while it updates: the step is finished and saved, its validation is made up for",
      (opened, controller) => abortAt(opened, controller, "train", 4),
      { step: 2, lost: "validation after step 2" },
    ],
  ];
  for (const [name, arrange, { step, lost }] of cases) {
    it(name, async () => {
      const controller = new AbortController();
      const opened = await openTinyTraining(models, { ...options, signal: controller.signal });
      const { training } = await interrupt(arrange(opened, controller));
      const checkpoint = join(pathOf(opened), "checkpoints", `global_step_${step}`);
      expect(training).toMatchObject({ step, total: 4, checkpoint, lost: expect.stringContaining(lost) });
      expect(existsSync(checkpoint)).toBe(true);
      await train(await reopen(opened));
      expect(readRun(opened)).toEqual(whole);
    });
  }

  it("while it validates, twice: the metrics of the step come last of all", async () => {
    const controller = new AbortController();
    const opened = await openTinyTraining(models, { ...options, signal: controller.signal });
    const { training } = await interrupt(abortAt(opened, controller, "createSequence", 2 + 1));
    expect(training).toMatchObject({ step: 1, lost: "the validation after step 1" });
    expect(existsSync(join(pathOf(opened), "metrics.jsonl"))).toBe(false);
    // Interrupt again, during the repeated validation.
    const second = new AbortController();
    const again = await reopen(opened);
    second.abort(new Error("at once"));
    expect((await interrupt({ ...again, signal: second.signal })).training).toMatchObject({
      step: 1,
      checkpoint: training.checkpoint,
    });
    await train(await reopen(opened));
    expect(readRun(opened)).toEqual(whole);
  });

  it("in the validation before training: there is nothing to save, and that validation is lost", async () => {
    const controller = new AbortController();
    const trainer = { ...options.trainer, val_before_train: true };
    const opened = await openTinyTraining(models, { ...options, trainer, signal: controller.signal });
    const { training } = await interrupt(abortAt(opened, controller, "createSequence", 1));
    expect(training).toEqual({ step: 0, total: 4, checkpoint: null, lost: "the validation before training" });
    expect(JSON.parse(readFileSync(join(pathOf(opened), "end.json"), "utf8"))).toMatchObject({ status: "interrupted" });
  });

  it("a step that fails after its checkpoint was written leaves none", async () => {
    const trainer = { ...options.trainer, save_freq: 1 };
    const opened = await openTinyTraining(models, { ...options, trainer });
    const afterStep = () => Promise.reject(new Error("broken"));
    await expect(runTraining(opened, { configFolder: opened.folder, afterStep })).rejects.toThrow("broken");
    expect(readdirSync(join(pathOf(opened), "checkpoints"))).toEqual([]);
  });

  it("before anything is done: there is nothing to save, and it says so", async () => {
    const controller = new AbortController();
    controller.abort(new Error("at once"));
    const opened = await openTinyTraining(models, { ...options, signal: controller.signal });
    const { training, message } = await interrupt(opened);
    expect(training).toMatchObject({ step: 0, total: 4, checkpoint: null });
    expect(message).toMatch(/ 0 of 4\n {2}saved: nothing, /);
  });
});

describe("save_minutes", () => {
  /** Takes five steps of one minute each; returns the steps with a checkpoint after each of them. */
  async function save(options: { saveFreq: number; saveMinutes: number; secondsToSave: number }): Promise<number[][]> {
    let now = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    try {
      const checkpoints = new CheckpointStore(mkdtempSync(join(models.folder, "saves-")), 1);
      const saveWeights = async () => {
        now += 1000 * options.secondsToSave;
      };
      const saves = new SavePoints({ ...options, total: 5, checkpoints, saveWeights });
      const seen: number[][] = [];
      for (let step = 1; step <= 5; step++) {
        now += 60_000;
        const due = saves.isDue(step);
        if (due) await (await saves.prepare({ step, engines: {}, data: {}, rng: {} }, due))?.commit();
        seen.push(await checkpoints.list());
      }
      return seen;
    } finally {
      clock.mockRestore();
    }
  }

  it("keeps the newest of its checkpoints, beside those that save_freq and max_actor_ckpt_to_keep leave", async () => {
    const seen = await save({ saveFreq: 3, saveMinutes: 1, secondsToSave: 0 });
    expect(seen).toEqual([[1], [2], [3, 2], [4, 3], [5, 4]]);
  });

  it("waits so many minutes after any save", async () => {
    expect(await save({ saveFreq: -1, saveMinutes: 2, secondsToSave: 0 })).toEqual([[], [2], [2], [4], [5, 4]]);
  });

  it("takes a twentieth of the time at most", async () => {
    expect(await save({ saveFreq: -1, saveMinutes: 1, secondsToSave: 6 })).toEqual([[1], [1], [3], [3], [5, 3]]);
  });

  it("0 saves by save_freq alone", async () => {
    expect(await save({ saveFreq: -1, saveMinutes: 0, secondsToSave: 0 })).toEqual([[], [], [], [], [5]]);
  });
});
