import { createHash } from "node:crypto";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openTinyTraining, type TinyTraining } from "../testing/tiny-training.js";
import { computeLearningRate, countSteps, countWarmupSteps, type LearningRateOptions } from "./learning-rate.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const plain: LearningRateOptions = {
  learningRate: 2,
  schedule: "constant",
  warmupSteps: -1,
  warmupStepsRatio: 0,
  minLrRatio: 0,
  numCycles: 0.5,
};
const list = (options: Partial<LearningRateOptions>, total: number) =>
  Array.from({ length: total }, (_, i) => computeLearningRate({ ...plain, ...options }, i + 1, total));
const hashFloats = (values: number[]) =>
  createHash("sha256").update(Float64Array.from(values)).digest("hex").slice(0, 16);
const expectClose = (actual: number[], expected: number[]) => {
  expect(actual).toHaveLength(expected.length);
  for (const [i, value] of actual.entries()) expect(value, `step ${i + 1}`).toBeCloseTo(expected[i]!, 12);
};

describe("the learning rate", () => {
  it("is constant, or rises to it", () => {
    expectClose(list({}, 3), [2, 2, 2]);
    expectClose(list({ warmupSteps: 4 }, 6), [0.5, 1, 1.5, 2, 2, 2]);
  });

  it("rises over a share of the steps, unless their number is given", () => {
    expect(countWarmupSteps({ ...plain, warmupStepsRatio: 0.35 }, 10)).toBe(3);
    expect(countWarmupSteps({ ...plain, warmupStepsRatio: 0.35, warmupSteps: 0 }, 10)).toBe(0);
    expectClose(list({ warmupStepsRatio: 0.5 }, 4), [1, 2, 2, 2]);
  });

  it("falls along a cosine", () => {
    // 1 + cos(π p) for p = 0, 1/4, 1/2, 3/4.
    const half = Math.SQRT1_2;
    expectClose(list({ schedule: "cosine" }, 4), [2, 1 + half, 1, 1 - half]);
    const warm = { schedule: "cosine", warmupSteps: 2, minLrRatio: 0.5 } as const;
    // Rises from lr / 2 to lr, then falls towards lr / 2.
    expectClose(list(warm, 6), [1.5, 2, 2, 1.5 + half / 2, 1.5, 1.5 - half / 2]);
  });

  it("falls from the start, the warm-up being a factor: the rates that the embedded policy was made with", () => {
    const recipe = {
      learningRate: 3e-3,
      schedule: "cosine_from_start",
      warmupSteps: 100,
      minLrRatio: 0.05,
    } as const;
    const rates = list(recipe, 4500);
    expect(rates[49]! / 3e-3).toBeCloseTo(0.5, 3);
    expect(rates.indexOf(Math.max(...rates))).toBe(99);
    expect(rates[2250]! / 3e-3).toBeCloseTo(0.525, 12);
    expect(rates.at(-1)! / 3e-3).toBeCloseTo(0.05, 6);
    // The bits must be equal: a different last bit anywhere would give a different policy.
    expect(hashFloats(rates)).toBe("e18857926342772d");
  });

  it("of a whole cycle comes back, and never goes below minLrRatio", () => {
    const whole = list({ schedule: "cosine", numCycles: 1, minLrRatio: 0.1 }, 40);
    expect(Math.min(...whole)).toBeCloseTo(0.2, 12);
    expect(whole.indexOf(Math.min(...whole))).toBe(20);
    expect(whole.at(-1)).toBeCloseTo(whole[1]!, 12);
  });

  it("is used, and reported, for actor and critic", async () => {
    const optim = (lr: number) => ({ lr, lr_scheduler_type: "cosine", lr_warmup_steps_ratio: 0.25, min_lr_ratio: 0.1 });
    const training = await openTinyTraining(models, {
      algorithm: { adv_estimator: "gae" },
      actor: { optim: optim(1e-2) },
      critic: { optim: optim(1e-1), model: { lora_rank: 2 } },
      trainer: { total_training_steps: 8 },
    });
    for (const step of [1, 4, 8]) {
      const { metrics } = await runTrainingStep(training, { rows: training.trainRows, step: step, epoch: 0 });
      const schedule = { learningRate: 1e-2, schedule: "cosine", warmupStepsRatio: 0.25, minLrRatio: 0.1 } as const;
      const expected = computeLearningRate({ ...plain, ...schedule }, step, 8);
      expect(metrics["actor/lr"]).toBeCloseTo(expected, 12);
      expect(metrics["critic/lr"]).toBeCloseTo(10 * expected, 12);
    }
    await training.critic!.engine.dispose();
  });

  it("of the actor rises and falls over the steps after the critic's warm-up, in a resumed run as well", async () => {
    const optim = { lr: 1e-2, lr_scheduler_type: "cosine", lr_warmup_steps: 3, min_lr_ratio: 0 } as const;
    const schedule = { learningRate: 1e-2, schedule: "cosine", warmupSteps: 3, minLrRatio: 0 } as const;
    const open = () =>
      openTinyTraining(models, {
        algorithm: { adv_estimator: "gae" },
        actor: { optim },
        critic: { optim, model: { lora_rank: 2 } },
        trainer: { total_training_steps: 10, critic_warmup: 3 },
      });
    const rates = async (training: TinyTraining, steps: number[]) => {
      const list: { actor?: number; critic: number }[] = [];
      for (const step of steps) {
        const { metrics } = await runTrainingStep(training, { rows: training.trainRows, step: step, epoch: 0 });
        list.push({ actor: metrics["actor/lr"], critic: metrics["critic/lr"]! });
      }
      await training.critic!.engine.dispose();
      return list;
    };
    const training = await open();
    const all = await rates(
      training,
      Array.from({ length: 10 }, (_, i) => i + 1),
    );
    // The actor is not updated in the first three steps; the next three are its warm-up.
    expect(all.slice(0, 3).map(({ actor }) => actor)).toEqual([undefined, undefined, undefined]);
    expectClose(
      all.slice(3).map(({ actor }) => actor!),
      list(schedule, 7),
    );
    expect(all[5]!.actor).toBe(1e-2);
    expectClose(
      all.map(({ critic }) => critic),
      list(schedule, 10),
    );
    // The engine received the learning rates in the metrics.
    expect(training.optimizers.map(({ learningRate }) => learningRate)).toEqual(all.slice(3).map(({ actor }) => actor));
    // The rate depends only on the step: a training that starts in the middle has the same rates.
    expect(await rates(await open(), [5, 9])).toEqual([all[4], all[8]]);
  });

  it("of almost nothing leaves the critic as it is", async () => {
    const losses: number[] = [];
    for (const lr of [1e-12, 1e-1]) {
      const training = await openTinyTraining(models, {
        algorithm: { adv_estimator: "gae" },
        actor: { optim: { lr: 1e-12 } },
        critic: { optim: { lr }, model: { lora_rank: 2 } },
      });
      await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
      losses.push(
        (await runTrainingStep(training, { rows: training.trainRows, step: 2, epoch: 0 })).metrics[
          "critic/values/max"
        ]!,
      );
      await training.critic!.engine.dispose();
    }
    expect(Math.abs(losses[0]!)).toBeLessThan(1e-6);
    expect(Math.abs(losses[1]!)).toBeGreaterThan(1e-3);
  });
});

describe("a training", () => {
  it("has as many steps as its epochs, unless the config says how many", async () => {
    const training = await openTinyTraining(models, { data: { train_batch_size: 1 }, trainer: { total_epochs: 2 } });
    expect(countSteps(training.settings, training.trainRows.length)).toBe(6);
    training.settings.steps = 4;
    expect(countSteps(training.settings, training.trainRows.length)).toBe(4);
  });
});
