import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readGguf } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { TrainingBus } from "../cluster/training-bus.js";
import { readModelShape } from "../memory/estimate-memory.js";
import { measureNeed } from "../memory/measure-need.js";
import type { SampledStep } from "../step/collect-rollouts.js";
import { sampleStep } from "../step/sample-step.js";
import { versionOf } from "../step/schedule.js";
import { runTrainingStep } from "../step/training-step.js";
import { hashSync } from "../testing/hash-sync.js";
import { ASCII_SHARE, openTinyTraining, type TinyTrainingOptions, writeTinyRun } from "../testing/tiny-training.js";
import { Stopwatch } from "../timing/stopwatch.js";
import { RunState } from "./run-state.js";
import { runTraining } from "./run-training.js";
import { TrainingInterrupted } from "./steps.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const STEPS = 5;
const prompts = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"];

function options(lag: number, more: TinyTrainingOptions = {}): TinyTrainingOptions {
  return {
    prompts,
    ...more,
    data: { train_batch_size: 2, ...more.data },
    actor: { ppo_mini_batch_size: 2, ...more.actor },
    trainer: {
      total_training_steps: STEPS,
      val_before_train: false,
      v1: { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: lag } },
      ...more.trainer,
    },
  };
}

async function train(lag: number, more: TinyTrainingOptions = {}) {
  const training = await openTinyTraining(models, options(lag, more));
  try {
    const summary = await runTraining(training, { configFolder: training.folder });
    return { ...summary, training, sha: hashSync(summary.weights) };
  } finally {
    await training.dispose();
  }
}

/** Trains by the schedule, but sequentially: a step's conversations end before the next step's start. */
async function trainInTurns(lag: number, more: TinyTrainingOptions = {}): Promise<string> {
  const training = await openTinyTraining(models, options(lag, more));
  try {
    const state = new RunState(training);
    const versions = [await training.policy.keepVersion()];
    const dealt = Array.from({ length: STEPS }, (_, i) => state.deal(i + 1));
    for (let step = 1; step <= STEPS; step++) {
      const { epoch, ...rows } = dealt[step - 1]!;
      const version = versions[versionOf(step, { lag })]!;
      const sampled: SampledStep = await sampleStep(training, { ...rows, step, version }, new Stopwatch());
      await runTrainingStep(training, { ...rows, step, epoch, sampled: Promise.resolve(sampled) });
      versions.push(await training.policy.keepVersion());
    }
    const file = join(training.folder, "in-turns.gguf");
    await training.policy.save(file);
    for (const version of versions) await version.dispose();
    return hashSync(file);
  } finally {
    await training.dispose();
  }
}

/** Trains until an interruption in a step, and then the rest with all that was loaded anew. */
async function trainInterrupted(lag: number, at: number, more: TinyTrainingOptions = {}) {
  const controller = new AbortController();
  const interrupted = await openTinyTraining(models, { ...options(lag, more), signal: controller.signal });
  await expect(
    runTraining(interrupted, {
      configFolder: interrupted.folder,
      afterStep: async () => {
        if (interrupted.policy.updates === at) controller.abort(new Error("interrupted"));
      },
    }),
  ).rejects.toThrow(TrainingInterrupted);
  await interrupted.dispose();
  const { trainer, actor_rollout_ref } = interrupted.config;
  const [checkpoint] = readdirSync(interrupted.folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(`global_step_${at}`),
  );
  const saved = readdirSync(join(interrupted.folder, checkpoint!, "actor")).sort();
  const again = await openTinyTraining(models, options(lag, more));
  again.config.trainer.default_local_dir = trainer.default_local_dir;
  again.config.actor_rollout_ref.model.path = actor_rollout_ref.model.path;
  const { weights, steps } = await runTraining(again, { configFolder: again.folder });
  await again.dispose();
  return { steps, saved, sha: hashSync(weights) };
}

/** A reward with different delays per row, so that steps finish in another order. */
const delayed = (factor: number) =>
  `return new Promise((done) => setTimeout(() => { ${ASCII_SHARE.replace("return", "done(").replace(
    /;$/,
    ")",
  )} }, (${factor} * truth.length * 7) % 23));`;

describe("a training whose steps are sampled ahead", () => {
  it.each([1, 2, 7])("with a lag of %i: has the bits of its schedule, done one thing after the other", async (lag) => {
    const { sha, metrics, steps } = await train(lag);
    expect(sha).toBe(await trainInTurns(lag));
    expect(steps).toHaveLength(STEPS);
    const last = STEPS - 1 - versionOf(STEPS, { lag });
    expect(metrics).toMatchObject({
      "training/off_policy/depends_on_clock": 0,
      "training/off_policy/trajectory_spans/max": 1,
      "training/off_policy/trajectory_staleness/mean": last,
      "training/off_policy/trajectory_staleness_worst/max": last,
    });
    expect(steps[0]!["training/off_policy/trajectory_staleness/mean"]).toBe(0);
    for (const metrics of steps) {
      const parts = Object.keys(metrics).filter((name) => name.startsWith("timing_s/wall/"));
      const sum = parts.reduce((total, name) => total + metrics[name]!, 0);
      expect(Math.abs(sum / metrics["timing_s/step"]! - 1)).toBeLessThan(0.02);
    }
  });

  it("weighs the tokens of earlier policies by the update's own pass where a step has one update", async () => {
    const batch = { data: { train_batch_size: 2 } };
    const [own, separate] = [await train(2, batch), await train(2, { ...batch, actor: { old_log_prob: "separate" } })];
    expect(own.sha).toBe(separate.sha);
    const pass = ({ steps }: typeof own) => steps.map((metrics) => metrics["training/old_log_prob_pass"]);
    expect(new Set(pass(own))).toEqual(new Set([0]));
    expect(new Set(pass(separate))).toEqual(new Set([1]));
    // Weights of 1 would not show whether they are the same.
    const spread = own.steps.map((metrics) => metrics["rollout_corr/rollout_is_std"]!);
    expect(spread[0]).toBe(0);
    expect(Math.min(...spread.slice(1))).toBeGreaterThan(0);
  });

  it("without lag is the training in turns, and each lag trains another adapter", async () => {
    const shas = await Promise.all([0, 1, 2].map(async (lag) => (await train(lag)).sha));
    const { sha, metrics } = await train(0, { trainer: { v1: { trainer_mode: "sync" } } });
    expect(shas[0]).toBe(sha);
    expect(Object.keys(metrics).filter((name) => name.includes("off_policy"))).toEqual([]);
    expect(new Set(shas).size).toBe(3);
  });

  it("does not depend on the order in which conversations end: other delays, other slots, a validation between", async () => {
    const first = await train(2);
    for (const factor of [1, 5]) expect((await train(2, { reward: delayed(factor) })).sha).toBe(first.sha);
    expect((await train(2, { rollout: { max_num_seqs: 3 } })).sha).toBe(first.sha);
    const validated = { data: { train_batch_size: 2, val_files: "rows.jsonl" }, trainer: { test_freq: 1 } };
    const trainer = { ...options(2).trainer, ...validated.trainer };
    expect((await train(2, { ...validated, trainer })).sha).toBe(first.sha);
  });

  it("samples each step by the version that the schedule names", async () => {
    const { steps, training } = await train(1, { trainer: { ...options(1).trainer, logger: ["file"] } });
    // The initial policy samples the first two steps; later steps are sampled by trained versions.
    expect(steps.map((metrics) => metrics["training/off_policy/trajectory_staleness/mean"])).toEqual([0, 1, 1, 1, 1]);
    const gap = steps.map((metrics) => metrics["training/rollout_probs_diff_max"] ?? 0);
    expect(gap[0]).toBeLessThan(1e-3);
    expect(Math.min(...gap.slice(1))).toBeGreaterThan(10 * gap[0]!);
    expect(training.settings.correction.rolloutIs).toBe("token");
  });

  it("refills a step from a stream of its own", async () => {
    // Short answers have equal scores: some groups have no spread and are replaced.
    const reward = "return truth.length % 2 ? 1 : text.length % 3;";
    const more = { reward, algorithm: { filter_groups: { enable: true, max_num_gen_batches: 3 } } };
    const { sha, steps } = await train(2, more);
    expect(Math.max(...steps.map((metrics) => metrics["train/num_gen_batches"] ?? 0))).toBeGreaterThan(1);
    expect(sha).toBe(await trainInTurns(2, more));
    expect((await train(2, { ...more, rollout: { max_num_seqs: 2 } })).sha).toBe(sha);
  });

  it("samples failed conversations again by the version of their step (on_failure: refill)", async () => {
    // A conversation's first answer that ends in such a character is never judged; its next attempt may be.
    const reward = `if (text.charCodeAt(text.length - 1) % 3 === 0) throw new Error("HTTP 503"); ${ASCII_SHARE}`;
    const more = { reward, rollout: { on_failure: "refill" } };
    const { sha, steps } = await train(2, more);
    const refilled = steps.map((metrics) => metrics["rollout/refilled"]!);
    expect(Math.min(...refilled)).toBeGreaterThan(0);
    expect(sha).toBe(await trainInTurns(2, more));
    expect((await train(2, { ...more, rollout: { ...more.rollout, max_num_seqs: 3 } })).sha).toBe(sha);
    expect((await trainInterrupted(2, 2, more)).sha).toBe(sha);
    const dropped = await train(2, { ...more, rollout: { on_failure: "drop" } });
    expect(dropped.sha).not.toBe(sha);
    expect(dropped.steps.map((metrics) => metrics["rollout/refilled"] ?? 0)).toEqual(steps.map(() => 0));
  });

  it("takes greedy baselines by the version that sampled the step", async () => {
    const more = { algorithm: { adv_estimator: "remax" } };
    expect((await train(1, more)).sha).toBe(await trainInTurns(1, more));
  });

  it.each([1, 2, 3])("interrupted in step %i goes on to equal bits: the checkpoint has the versions", async (at) => {
    const whole = await train(2);
    const { steps, sha } = await trainInterrupted(2, at);
    expect(steps).toHaveLength(STEPS - at);
    expect(sha).toBe(whole.sha);
  });

  it("refuses a checkpoint of a smaller lag", async () => {
    const controller = new AbortController();
    const short = await openTinyTraining(models, { ...options(1), signal: controller.signal });
    const afterStep = async () => {
      if (short.policy.updates === 3) controller.abort(new Error("interrupted"));
    };
    await expect(runTraining(short, { configFolder: short.folder, afterStep })).rejects.toThrow(TrainingInterrupted);
    await short.dispose();
    const again = await openTinyTraining(models, options(2));
    again.config.trainer.default_local_dir = short.config.trainer.default_local_dir;
    again.config.actor_rollout_ref.model.path = short.config.actor_rollout_ref.model.path;
    await expect(runTraining(again, { configFolder: again.folder })).rejects.toMatchObject({
      code: "data/checkpoint-mismatch",
    });
    await again.dispose();
  });

  it.each<[string, TinyTrainingOptions, string]>([
    [
      "a lag that is not allowed",
      {
        trainer: {
          v1: {
            trainer_mode: "colocate_async",
            colocate_async: { num_warmup_batches: 3 },
            sampler: { max_off_policy_threshold: 2 },
          },
        },
      },
      "trainer.v1.colocate_async.num_warmup_batches",
    ],
    [
      "a batch that is not the mini-batches between two versions",
      { trainer: { v1: { trainer_mode: "separate_async", separate_async: { parameter_sync_step: 2 } } } },
      "data.train_batch_size",
    ],
  ])("refuses %s", async (_, more, subject) => {
    await expect(openTinyTraining(models, more)).rejects.toMatchObject({ code: "config/bad-value", subject });
  });
});

const full: TinyTrainingOptions = { model: { lora_rank: 0 } };

describe("a training of all weights whose steps are sampled ahead", () => {
  it.each([1, 2, 7])("with a lag of %i: has the bits of its schedule, done one thing after the other", async (lag) => {
    const { sha, steps } = await train(lag, full);
    expect(sha).toBe(await trainInTurns(lag, full));
    expect(steps.map((metrics) => metrics["training/off_policy/trajectory_staleness/mean"])).toEqual(
      Array.from({ length: STEPS }, (_, i) => i - versionOf(i + 1, { lag })),
    );
  });

  it("with each lag trains other weights", async () => {
    const shas = await Promise.all([0, 1, 2].map(async (lag) => (await train(lag, full)).sha));
    expect(new Set(shas).size).toBe(3);
  });

  it("does not depend on delays, slots, threads, or a validation between", async () => {
    const { sha } = await train(2, full);
    const validated = { data: { train_batch_size: 2, val_files: "rows.jsonl" }, trainer: { test_freq: 1 } };
    const others: TinyTrainingOptions[] = [
      { reward: delayed(5) },
      { maxSequences: 3, threads: 2 },
      { ...validated, trainer: { ...options(2).trainer, ...validated.trainer } },
    ];
    for (const more of others) expect((await train(2, { ...full, ...more })).sha).toBe(sha);
  });

  it("learns from what the version of the schedule sampled: the sampler's logprobs are the version's", async () => {
    const { steps } = await train(1, full);
    const gap = steps.map((metrics) => metrics["training/rollout_probs_diff_max"] ?? 0);
    expect(gap[0]).toBe(0);
    expect(Math.min(...gap.slice(1))).toBeGreaterThan(1e-3);
  });

  it("takes greedy baselines by the version that sampled the step", async () => {
    const more = { ...full, algorithm: { adv_estimator: "remax" } };
    expect((await train(1, more)).sha).toBe(await trainInTurns(1, more));
  });

  it.each([1, 2, 3, 4])(
    "interrupted in step %i goes on to equal bits, by the versions of the checkpoint",
    async (at) => {
      const whole = await train(2, full);
      const { steps, saved, sha } = await trainInterrupted(2, at, full);
      expect(steps).toHaveLength(STEPS - at);
      expect(sha).toBe(whole.sha);
      // Each version once, and the newest in the state.
      const versions = [
        ...new Set([at + 1, at + 2].filter((step) => step <= STEPS).map((step) => versionOf(step, { lag: 2 }))),
      ];
      expect(saved).toEqual(["state.bin", ...versions.filter((v) => v < at).map((v) => `version_${v}.gguf`)]);
    },
  );

  it("is refused before a model is loaded where its versions exceed memory, with the lag that fits", async () => {
    const open = (lag: number, more: TinyTrainingOptions = full) => openTinyTraining(models, options(lag, more));
    const { config, folder } = await writeTinyRun(models, options(7, full));
    const shape = readModelShape(await readGguf(config.actor_rollout_ref.model.path));
    const { needed } = await measureNeed(config, folder, shape, 0);
    const rss = vi.spyOn(process.memoryUsage, "rss").mockReturnValue(0);
    const limit = vi.spyOn(process, "constrainedMemory");
    const allow = (bytes: number) => limit.mockReturnValue(Math.round(bytes));
    const version = 4 * shape.parameters;
    try {
      allow(needed);
      await (await open(7)).dispose();
      // Versions that are sent to workers are held twice. The training is refused before it uses the bus.
      allow(needed - 1.5 * version);
      await expect(openTraining(config, folder, { bus: {} as TrainingBus })).rejects.toMatchObject({
        code: "config/lag-beyond-memory",
        expected: "at most 2",
      });
      allow(needed - 4.5 * version);
      await expect(open(7)).rejects.toMatchObject({
        code: "config/lag-beyond-memory",
        subject: "trainer.v1.colocate_async.num_warmup_batches",
        expected: "at most 2",
      });
      await (await open(2)).dispose();
      allow(needed - 7.5 * version);
      await expect(open(7)).rejects.toMatchObject({ expected: expect.stringMatching(/^0/) });
      // Without a lag, or with an adapter, nothing is refused.
      await (await open(0)).dispose();
      await (await open(7, {})).dispose();
    } finally {
      for (const spy of [rss, limit]) spy.mockRestore();
    }
  });
});
