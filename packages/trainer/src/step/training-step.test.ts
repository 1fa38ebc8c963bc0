import { setMaxListeners } from "node:events";
import type { Trajectory } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openTraining } from "../run/training.js";
import { dropTimes } from "../testing/drop-times.js";
import {
  openTinyTraining,
  type TinyTraining,
  type TinyTrainingOptions,
  writeTinyRun,
} from "../testing/tiny-training.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const open = (options: TinyTrainingOptions = {}) => openTinyTraining(models, options);
const take = (training: TinyTraining, step = 1) =>
  runTrainingStep(training, { rows: training.trainRows, step: step, epoch: 0 });
const countSampled = (t: Trajectory) => t.responseMask.reduce((sum, bit) => sum + bit, 0);

describe("a training step", () => {
  it("starts with a ratio of exactly 1, and its loss follows the formulas", async () => {
    const training = await open();
    const { trajectories, metrics } = await take(training);
    expect(metrics["actor/ppo_kl"]).toBe(0);
    expect(metrics["actor/pg_clipfrac"]).toBe(0);
    // Sampler and training graph agree to float precision.
    expect(metrics["training/rollout_probs_diff_max"]).toBeLessThan(1e-5);
    let loss = 0;
    for (const row of training.trainRows) {
      const group = trajectories.filter((t) => t.uid === row.uid);
      expect(group).toHaveLength(4);
      const mean = group.reduce((sum, t) => sum + t.reward, 0) / 4;
      const std = Math.sqrt(group.reduce((sum, t) => sum + (t.reward - mean) ** 2, 0) / 3);
      for (const t of group) loss -= (countSampled(t) * (t.reward - mean)) / (std + 1e-6);
    }
    loss /= trajectories.reduce((sum, t) => sum + countSampled(t), 0);
    expect(metrics["actor/pg_loss"]).toBeCloseTo(loss, 5);
    expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
    expect(metrics["critic/rewards/mean"]).toBeCloseTo(
      trajectories.reduce((sum, t) => sum + t.reward, 0) / trajectories.length,
      6,
    );
  });

  it("is on policy at temperature 0.7 too: ratio 1, sampler and graph agree, and so does the reference", async () => {
    const training = await open({
      rollout: { temperature: 0.7 },
      actor: { use_kl_loss: true, kl_loss_type: "abs", optim: { lr: 3e-2 }, old_log_prob: "separate" },
    });
    const { metrics, trajectories } = await take(training);
    expect(metrics["actor/ppo_kl"]).toBe(0);
    expect(metrics["actor/pg_clipfrac"]).toBe(0);
    expect(metrics["training/rollout_probs_diff_max"]).toBeLessThan(1e-5);
    // The adapter is new: at the same temperature, policy and reference are equal.
    expect(metrics["actor/kl_loss"]).toBe(0);
    expect(training.scores).toMatchObject([{ temperature: 0.7 }, { temperature: 0.7, adapter: false }]);
    // The temperature matters: at 1 the same tokens have other logprobs.
    const { tokenIds, promptLength, rolloutLogprobs } = trajectories[0]!;
    const [at1] = await training.policy.engine.score([{ tokenIds, from: promptLength }]);
    expect(Math.abs(at1!.logprobs[promptLength]! - rolloutLogprobs[promptLength]!)).toBeGreaterThan(1e-3);
    expect((await take(training, 2)).metrics["actor/kl_loss"]).toBeGreaterThan(1e-4);
  });

  it("leaves conversations without advantage out of the update, but not out of its denominators", async () => {
    const reward = 'if (truth === "bb") return 1; return [...text].filter((c) => c.charCodeAt(0) < 128).length;';
    const lean = await open({ reward });
    const leanStep = await take(lean);
    // A vanishing entropy term keeps every trajectory in.
    const whole = await open({ reward, actor: { entropy_coeff: 1e-12, optim: { lr: 1e-2 } } });
    const wholeStep = await take(whole);
    const deviating = leanStep.trajectories.filter((t, _, all) => {
      const group = all.filter((other) => other.uid === t.uid);
      return t.reward !== group.reduce((sum, other) => sum + other.reward, 0) / group.length;
    });
    expect(deviating.length).toBeGreaterThan(4);
    expect(deviating.map((t) => t.rowIndex)).not.toContain(1);
    expect(lean.batches.map((b) => b.length)).toEqual([deviating.length]);
    expect(whole.batches.map((b) => b.length)).toEqual([12]);
    const [a, b] = [leanStep.metrics["actor/grad_norm"]!, wholeStep.metrics["actor/grad_norm"]!];
    expect(Math.abs(a - b) / b).toBeLessThan(1e-5);
    expect(leanStep.metrics["actor/pg_loss"]).toBeCloseTo(wholeStep.metrics["actor/pg_loss"]!, 6);
  });

  it("takes no update when nothing can be learned from the batch", async () => {
    const training = await open({ reward: "return 1;" });
    const { metrics } = await take(training);
    expect(training.batches).toEqual([]);
    expect(metrics["critic/rewards/mean"]).toBe(1);
    expect(metrics["actor/grad_norm"]).toBeUndefined();
  });

  it("cuts mini-batches by prompts, each prompt once an epoch, in an order of the seed's", async () => {
    const orders: string[] = [];
    for (const seed of [1, 2, 3]) {
      const training = await open({
        prompts: ["a", "b", "c", "d"],
        actor: { ppo_mini_batch_size: 1, ppo_epochs: 2, optim: { lr: 1e-3 } },
        rollout: { seed },
      });
      const { trajectories } = await take(training);
      const promptOf = (tokenIds: ArrayLike<number>) =>
        trajectories.find((t) => t.tokenIds.join() === Array.from(tokenIds).join())!.rowIndex;
      const uids = training.batches.map((batch) => new Set(batch.map((s) => promptOf(s.tokenIds))));
      expect(uids.map((set) => set.size)).toEqual(Array(8).fill(1));
      const order = uids.map((set) => [...set][0]!);
      for (const epoch of [order.slice(0, 4), order.slice(4)]) expect([...epoch].sort()).toEqual([0, 1, 2, 3]);
      orders.push(order.join());
    }
    expect(new Set(orders).size).toBeGreaterThan(1);
  });

  it("does not depend on the size of micro-batches", async () => {
    const results = [];
    for (const ppo_max_token_len of [64, 100_000]) {
      const training = await open({ actor: { ppo_max_token_len, optim: { lr: 1e-2 } } });
      results.push((await take(training)).metrics["actor/grad_norm"]!);
    }
    expect(Math.abs(results[0]! - results[1]!) / results[1]!).toBeLessThan(1e-5);
  });

  it("full training takes its KL against a frozen copy", async () => {
    const { config, folder } = await writeTinyRun(models, {
      actor: { use_kl_loss: true, kl_loss_coef: 0.1, optim: { lr: 3e-2 } },
    });
    config.actor_rollout_ref.model.lora_rank = 0;
    const training = await openTraining(config, folder);
    try {
      const kl = [];
      for (const step of [1, 2])
        kl.push(
          (await runTrainingStep(training, { rows: training.trainRows, step: step, epoch: 0 })).metrics[
            "actor/kl_loss"
          ]!,
        );
      expect(kl[0]).toBeCloseTo(0, 6);
      expect(kl[1]).toBeGreaterThan(1e-4);
    } finally {
      await training.dispose();
    }
  });

  it("measures how far the update moved the policy, by a share of the scored tokens, and changes nothing by it", async () => {
    const train = async (update_kl_ratio: number, lr = 3e-2) => {
      const training = await open({ actor: { update_kl_ratio, optim: { lr }, old_log_prob: "separate" } });
      const [first, second] = [await take(training), await take(training, 2)];
      const counts = training.scores.map(({ count }) => count);
      return { kl: first.metrics["actor/update_kl"], loss: second.metrics["actor/pg_loss"], counts };
    };
    const [none, few, all, gentle] = [await train(0), await train(0.01), await train(1), await train(1, 3e-3)];
    expect(none.kl).toBeUndefined();
    expect(all.kl).toBeGreaterThan(10 * gentle.kl!);
    expect(gentle.kl).toBeGreaterThan(0);
    expect([few.loss, all.loss]).toEqual([none.loss, none.loss]);
    const [before] = none.counts;
    expect(all.counts.slice(0, 2)).toEqual([before, before]);
    expect(few.counts.slice(0, 2)).toEqual([before, 1]);
  });

  it("scores with the adapter off only when a KL term needs the reference", async () => {
    const plain = await open({ actor: { old_log_prob: "separate" } });
    await take(plain);
    expect(plain.scores.map((s) => s.adapter ?? true)).toEqual([true]);
    const withKl = await open({
      actor: { use_kl_loss: true, kl_loss_coef: 0.1, optim: { lr: 3e-2 }, old_log_prob: "separate" },
    });
    const first = await take(withKl);
    expect(withKl.scores.map((s) => s.adapter ?? true)).toEqual([true, false]);
    // A new adapter has no effect yet: policy and reference are equal.
    expect(first.metrics["actor/kl_loss"]).toBe(0);
    const second = await take(withKl, 2);
    expect(second.metrics["actor/kl_loss"]).toBeGreaterThan(1e-6);
  });

  it("computes the same for the same seed, and something else for another", async () => {
    const runs: Record<string, number>[][] = [];
    for (const seed of [7, 7, 8]) {
      const training = await open({ rollout: { seed } });
      runs.push([dropTimes((await take(training, 1)).metrics), dropTimes((await take(training, 2)).metrics)]);
    }
    expect(runs[1]).toEqual(runs[0]);
    expect(runs[2]).not.toEqual(runs[0]);
  });

  it("raises the reward of a random policy", async () => {
    const training = await open({ prompts: ["a", "b", "c", "d"], rollout: { n: 8 }, actor: { optim: { lr: 2e-2 } } });
    const rewards: number[] = [];
    for (let step = 1; step <= 12; step++) rewards.push((await take(training, step)).metrics["critic/rewards/mean"]!);
    const before = (rewards[0]! + rewards[1]!) / 2;
    expect(before).toBeLessThan(0.8);
    expect((rewards[10]! + rewards[11]!) / 2).toBeGreaterThan(before + 0.15);
  });

  it("with on_failure error a reward that is not a number names the row; nothing is trained", async () => {
    const reward = 'return truth === "bb" ? Number.NaN : text.length % 3;';
    const training = await open({ reward, rollout: { on_failure: "error" } });
    await expect(take(training)).rejects.toMatchObject({
      code: "rollout/failed",
      subject: expect.stringContaining("row 1 "),
      received: expect.stringContaining("NaN"),
    });
    expect(training.batches).toEqual([]);
  });

  it("an abort ends it before the update", async () => {
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    const training = await open({ signal: controller.signal, rollout: { response_length: 8 } });
    const running = take(training);
    controller.abort(new Error("enough"));
    await expect(running).rejects.toThrow();
    expect(training.batches).toEqual([]);
  });
});
