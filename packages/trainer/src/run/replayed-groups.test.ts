import type { TrainSequence } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { hashSync } from "../testing/hash-sync.js";
import { openTinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { runTraining } from "./run-training.js";
import { TrainingInterrupted } from "./steps.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const STEPS = 5;
const prompts = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"];

function options(
  replay: object,
  { lag = 0, ...more }: TinyTrainingOptions & { lag?: number } = {},
): TinyTrainingOptions {
  return {
    prompts,
    ...more,
    data: { train_batch_size: 2, ...more.data },
    actor: { ppo_mini_batch_size: 2, ...more.actor },
    algorithm: { replay, ...more.algorithm },
    trainer: {
      total_training_steps: STEPS,
      val_before_train: false,
      v1: { trainer_mode: lag > 0 ? "colocate_async" : "sync", colocate_async: { num_warmup_batches: lag } },
      ...more.trainer,
    },
  };
}

async function train(replay: object, more: Parameters<typeof options>[1] = {}) {
  const training = await openTinyTraining(models, options(replay, more));
  try {
    const { weights, steps } = await runTraining(training, { configFolder: training.folder });
    return { steps, sha: hashSync(weights), batches: training.batches };
  } finally {
    await training.dispose();
  }
}

const nameTokens = ({ tokenIds }: TrainSequence) => Array.from(tokenIds).join();

describe("algorithm.replay", () => {
  it("without a share has no effect", async () => {
    const plain = await train({});
    expect(Object.keys(plain.steps[2]!).filter((name) => name.startsWith("replay/"))).toEqual([]);
    expect((await train({ size: 2, max_age: 1, sampling: "newest" })).sha).toBe(plain.sha);
    expect((await train({ share: 1 })).sha).not.toBe(plain.sha);
  });

  it("learns again from groups of earlier steps, weighed by the ratio of the policy to its sampler", async () => {
    const replay = { share: 1, max_age: 2 };
    const { steps, batches, sha } = await train(replay, { actor: { old_log_prob: "separate" } });
    // By the update's own pass, too.
    expect((await train(replay)).sha).toBe(sha);
    expect(steps.map((metrics) => metrics["replay/groups"])).toEqual([0, 2, 2, 2, 2]);
    expect(steps.map((metrics) => metrics["replay/conversations"])).toEqual([0, 8, 8, 8, 8]);
    for (const metrics of steps.slice(1)) {
      expect(metrics["replay/age/min"]).toBeGreaterThanOrEqual(1);
      expect(metrics["replay/age/max"]).toBeLessThanOrEqual(2);
      expect(metrics["replay/weight/max"]).toBeLessThanOrEqual(2);
      // The policy has changed: the mean weight is not 1.
      expect(Math.abs(metrics["replay/weight/mean"]! - 1)).toBeGreaterThan(1e-6);
    }
    // There are as many updates as without replay.
    expect(batches).toHaveLength(STEPS);
    const first = new Map<string, TrainSequence>();
    let replayed = 0;
    for (const batch of batches)
      for (const sequence of batch) {
        const earlier = first.get(nameTokens(sequence));
        const { advantages, oldLogprobs, rolloutIsWeights } = sequence.columns!;
        if (earlier) {
          replayed++;
          const before = earlier.columns!;
          // Advantages come from its own group, whatever the other groups in the batch.
          expect(advantages).toEqual(before.advantages);
          expect(oldLogprobs).not.toEqual(before.oldLogprobs);
          Array.from(sequence.lossMask).forEach((bit, t) => {
            // When first learned from, the old logprobs equalled the sampler's up to rounding.
            const ratio = Math.exp(oldLogprobs![t]! - before.oldLogprobs![t]!);
            if (bit === 1) expect(rolloutIsWeights![t]!).toBeCloseTo(Math.min(2, ratio), 3);
          });
        } else first.set(nameTokens(sequence), sequence);
      }
    expect(replayed).toBeGreaterThan(8);
  });

  it("with bypass_mode the ratio of the loss is to the sampler", async () => {
    const algorithm = { rollout_correction: { bypass_mode: true } };
    const { batches, steps } = await train({ share: 1 }, { algorithm: { replay: { share: 1 }, ...algorithm } });
    const first = new Map<string, TrainSequence>();
    let replayed = 0;
    for (const sequence of batches.flat()) {
      const earlier = first.get(nameTokens(sequence));
      if (earlier) replayed++;
      if (earlier) expect(sequence.columns!.oldLogprobs).toEqual(earlier.columns!.oldLogprobs);
      else first.set(nameTokens(sequence), sequence);
    }
    expect(replayed).toBeGreaterThan(8);
    expect(steps.at(-1)!["replay/weight/mean"]).toBeUndefined();
  });

  it.each([0, 1])("asks the teacher again for the likeliest tokens, with a lag of %i", async (lag) => {
    const distillation = { enabled: true, distillation_loss: { loss_mode: "forward_kl_topk", topk: 4 } };
    const { batches } = await train({ share: 1 }, { lag, distillation });
    const first = new Map<string, TrainSequence>();
    let replayed = 0;
    for (const sequence of batches.flat()) {
      const earlier = first.get(nameTokens(sequence));
      if (!earlier) first.set(nameTokens(sequence), sequence);
      else replayed++;
      // The policy's own model before training does not change.
      if (earlier) expect(sequence.candidates).toEqual(earlier.candidates);
      expect(sequence.candidates!.ids.some((id) => id > 0)).toBe(true);
    }
    expect(replayed).toBeGreaterThan(8);
  });

  it.each([
    [0, 1],
    [0, 3],
    [1, 3],
  ])(
    "with a lag of %i, interrupted in step %i, goes on to equal bits: the checkpoint has the groups",
    async (lag, at) => {
      const replay = { share: 1.5, size: 3, max_age: 3 };
      const whole = await train(replay, { lag });
      const controller = new AbortController();
      const interrupted = await openTinyTraining(models, { ...options(replay, { lag }), signal: controller.signal });
      const afterStep = async () => {
        if (interrupted.policy.updates === at) controller.abort(new Error("interrupted"));
      };
      const training = runTraining(interrupted, { configFolder: interrupted.folder, afterStep });
      await expect(training).rejects.toThrow(TrainingInterrupted);
      await interrupted.dispose();
      const again = await openTinyTraining(models, options(replay, { lag }));
      again.config.trainer.default_local_dir = interrupted.config.trainer.default_local_dir;
      again.config.actor_rollout_ref.model.path = interrupted.config.actor_rollout_ref.model.path;
      const { weights, steps } = await runTraining(again, { configFolder: again.folder });
      await again.dispose();
      expect(steps).toHaveLength(STEPS - at);
      expect(hashSync(weights)).toBe(whole.sha);
    },
  );

  it.each<[string, TinyTrainingOptions]>([
    ["a critic, whose values were of then", { algorithm: { adv_estimator: "gae" } }],
    ["greedy baselines", { algorithm: { adv_estimator: "remax" } }],
    ["the KL in rewards", { algorithm: { use_kl_in_reward: true } }],
    ["PF-PPO", { algorithm: { use_pf_ppo: true } }],
    ["images", { model: { mmproj: "mmproj.gguf" } }],
  ])("refuses %s", async (_, more) => {
    const given = options({ share: 1 }, more);
    given.algorithm = { replay: { share: 1 }, ...more.algorithm };
    await expect(openTinyTraining(models, given)).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "algorithm.replay.share",
    });
  });
});
