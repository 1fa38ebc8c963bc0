import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type AdvantageInputs,
  advantageEstimators,
  aggregations,
  type CostlyInput,
  policyLosses,
} from "@cria/algorithms";
import { estimateReinforcePlusPlus } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import type { DatasetRow } from "@cria/rollout";
import { afterAll, describe, expect, it } from "vitest";
import { runTraining } from "../run/run-training.js";
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

/** Reward function: only the first prompt's rewards differ within the group; all others are 1. */
const ONE_GROUP_DIFFERS = 'if (truth !== "a") return 1; return [...text].filter((c) => c.charCodeAt(0) < 128).length;';

/** Registers "spy on <name>", which calls the estimator; returns the inputs that it receives. */
function spyOn(name: string): AdvantageInputs[] {
  const inputs: AdvantageInputs[] = [];
  const estimate = advantageEstimators.get(name);
  const spy = (given: AdvantageInputs) => {
    inputs.push(given);
    return estimate(given);
  };
  advantageEstimators.register(`spy on ${name}`, Object.assign(spy, estimate));
  return inputs;
}

function expectColumns(
  training: TinyTraining,
  name: string,
  check: (values: number[], t: Trajectory) => void,
  all: Trajectory[],
) {
  for (const { tokenIds, columns } of training.batches.flat()) {
    const trajectory = all.find((t) => t.tokenIds.join() === Array.from(tokenIds).join())!;
    const column = Array.from(columns![name]!).filter((_, t) => trajectory.responseMask[t]);
    check(column, trajectory);
  }
}

describe("every advantage estimator trains", () => {
  const perToken = ["gae", "reinforce_plus_plus", "remax", "optimal_token_baseline", "tir_optimal_token_baseline"];
  it.each(advantageEstimators.names())("%s", async (adv_estimator) => {
    const gdpo_reward_keys = adv_estimator === "gdpo" ? ["score"] : null;
    const rollout = adv_estimator === "tree_grpo" ? { tree: { expansions: 1 } } : {};
    const training = await open({ algorithm: { adv_estimator, gamma: 0.9, gdpo_reward_keys }, rollout });
    const { trajectories, metrics } = await take(training);
    expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
    for (const name of ["advantages", "returns"])
      expect(metrics[`critic/${name}/max`]).toBeGreaterThanOrEqual(metrics[`critic/${name}/mean`]!);
    if (!perToken.includes(adv_estimator)) {
      // An outcome's advantage is the same on every token.
      expectColumns(training, "advantages", (values) => expect(new Set(values).size).toBe(1), trajectories);
    }
  });

  it.each([
    ["gigpo", {}, { normalizeByStd: false, turnWeight: 1 }],
    ["gigpo", { gigpo: { mode: "mean_std_norm", step_advantage_w: 0.5 } }, { normalizeByStd: true, turnWeight: 0.5 }],
    ["mt_grpo", {}, { normalizeByStd: true, turnWeight: 1 }],
    [
      "mt_grpo",
      { turn_advantage_coef: 0.25, norm_adv_by_std_in_grpo: false },
      { normalizeByStd: false, turnWeight: 0.25 },
    ],
  ])("%s has the weight and the norm of its keys: %j", async (name, keys, expected) => {
    const inputs = spyOn(name);
    const spied = advantageEstimators.get(`spy on ${name}`);
    const given = advantageEstimators.get(name);
    advantageEstimators.register(name, spied);
    try {
      await take(await open({ algorithm: { adv_estimator: name, ...keys } }));
    } finally {
      advantageEstimators.register(name, given);
    }
    expect(inputs[0]).toMatchObject(expected);
  });

  const TWO_PARTS = "return { score: text.length, short: -text.length, ascii: /^[ -~]*$/.test(text) };";

  it("gdpo takes the parts that gdpo_reward_keys names, and gdpo_reward_weights weighs them", async () => {
    const inputs = spyOn("gdpo");
    const training = await open({
      reward: TWO_PARTS,
      algorithm: {
        adv_estimator: "spy on gdpo",
        gdpo_reward_keys: ["score", "short", "ascii"],
        gdpo_reward_weights: [2, 1, 0.5],
      },
    });
    const { trajectories } = await take(training);
    expect(inputs[0]!.rewardParts).toEqual([
      { values: trajectories.map((t) => t.rewards.score), weight: 2 },
      { values: trajectories.map((t) => -t.rewards.score!), weight: 1 },
      { values: trajectories.map((t) => Number(t.extraFields.ascii)), weight: 0.5 },
    ]);
    const wrong = await open({ reward: TWO_PARTS, algorithm: { adv_estimator: "gdpo", gdpo_reward_keys: ["long"] } });
    await expect(take(wrong)).rejects.toMatchObject({
      subject: expect.stringContaining('gdpo_reward_keys "long"'),
      received: expect.stringMatching(/score.*, short, ascii/),
    });
  });

  it("optimal_token_baseline has probabilities of the policy, and the weights of the rollout correction", async () => {
    const inputs = spyOn("optimal_token_baseline");
    for (const rollout_is of [null, "token"]) {
      const rollout_correction = { rollout_is, rollout_is_threshold: 1e-3 };
      const training = await open({
        reward: ONE_GROUP_DIFFERS,
        algorithm: { adv_estimator: "spy on optimal_token_baseline", rollout_correction },
      });
      const { metrics } = await take(training);
      // One pass over all trajectories, although most have no advantage.
      expect(training.scores).toEqual([expect.objectContaining({ count: 12, entropy: true, sumPiSquared: true })]);
      expect(metrics["training/evaluated_ratio"]).toBe(1);
      const { oldLogprobs, sumPiSquared, rolloutIsWeights, responseMask } = inputs.pop()!;
      const sampled = Array.from(responseMask).flatMap((bit, t) => (bit ? [t] : []));
      for (const t of sampled) {
        const p = Math.exp(oldLogprobs![t]!);
        // Bounds: the lower one assumes that all other tokens are equally likely.
        expect(sumPiSquared![t]!).toBeGreaterThanOrEqual(p * p + (1 - p) ** 2 / 256 - 1e-6);
        expect(sumPiSquared![t]!).toBeLessThanOrEqual(1);
        if (rollout_is) expect(rolloutIsWeights![t]).toBeCloseTo(1e-3, 9);
      }
      if (!rollout_is) expect(rolloutIsWeights).toBeUndefined();
    }
  });

  it("remax takes the reward of a greedy rollout of each prompt as its baseline", async () => {
    const training = await open({ algorithm: { adv_estimator: "remax" } });
    const { trajectories } = await take(training);
    const greedy = await open({ rollout: { n: 1 } });
    const baselines = new Map<string, number>();
    for (const row of greedy.trainRows) {
      const sequence = greedy.policy.engine.createSequence();
      const prompt = greedy.policy.tokenizer.encodePrompt(row.prompt, []);
      const { text } = await sequence.generate(prompt, { maxTokens: 8, temperature: 0 });
      baselines.set(row.uid, [...text].filter((c) => c.charCodeAt(0) < 128).length / Math.max(1, [...text].length));
      sequence.dispose();
    }
    expectColumns(
      training,
      "advantages",
      (values, t) => {
        for (const value of values) expect(value).toBeCloseTo(t.reward - baselines.get(t.uid)!, 5);
      },
      trajectories,
    );
  });

  it("grpo_passk with one rollout is refused before a model is loaded", async () => {
    const { config, folder } = await writeTinyRun(models, {
      algorithm: { adv_estimator: "grpo_passk" },
      rollout: { n: 1 },
    });
    config.actor_rollout_ref.model.path = "none.gguf";
    await expect(openTraining(config, folder)).rejects.toMatchObject({
      subject: expect.stringContaining("grpo_passk"),
      received: expect.stringContaining("1"),
    });
  });
});

describe("every policy loss trains, with any size of micro-batches", () => {
  it.each(policyLosses.names())("%s", async (loss_mode) => {
    const results = [];
    for (const ppo_max_token_len of [64, 100_000]) {
      const training = await open({
        // Two updates: in the second the ratio is not 1, and the ranks come from the weights after the first.
        actor: {
          ppo_max_token_len,
          ppo_epochs: 2,
          optim: { lr: 1e-2 },
          policy_loss: { loss_mode, clip_cov_ratio: 0.1, clip_cov_lb: 0.01, kl_cov_ratio: 0.1, dro_beta: 0.05 },
        },
      });
      const { metrics } = await take(training);
      expect(metrics["actor/ppo_kl"]).not.toBe(0);
      // A loss with statistics over the mini-batch scores it again before every update after the first.
      expect(training.scores).toHaveLength(policyLosses.get(loss_mode).prepare ? 1 : 0);
      results.push(metrics);
    }
    for (const name of ["actor/grad_norm", "actor/pg_loss"]) {
      const [a, b] = results.map((metrics) => metrics[name]!);
      expect(Math.abs(a! - b!) / (Math.abs(b!) + 1e-3), name).toBeLessThan(1e-5);
    }
  });

  it.each(aggregations.names())("vanilla with %s", async (loss_agg_mode) => {
    const results = [];
    for (const ppo_max_token_len of [64, 100_000]) {
      const training = await open({ actor: { ppo_max_token_len, loss_agg_mode, optim: { lr: 1e-2 } } });
      results.push((await take(training)).metrics["actor/grad_norm"]!);
    }
    expect(Math.abs(results[0]! - results[1]!) / results[1]!).toBeLessThan(1e-5);
  });
});

describe("a critic", () => {
  const openWithCritic = async (warmup: number): Promise<TinyTraining> => {
    const training = await open({
      algorithm: { adv_estimator: "gae", lam: 0.95 },
      actor: { optim: { lr: 2e-2 }, old_log_prob: "separate" },
      critic: { ppo_epochs: 2, optim: { lr: 2e-2 } },
      rollout: { n: 8 },
      trainer: { critic_warmup: warmup },
    });
    expect(training.critic).toMatchObject({ miniBatchSize: 3, epochs: 2, cliprangeValue: 0.5, warmup });
    return training;
  };

  it("gives gae its values, learns them, and leaves the actor alone while it warms up", async () => {
    const training = await openWithCritic(4);
    const losses: number[] = [];
    for (let step = 1; step <= 6; step++) {
      const { metrics } = await take(training, step);
      losses.push(metrics["critic/vf_loss"]!);
      expect(training.batches).toHaveLength(Math.max(0, step - 4));
      expect(metrics["critic/grad_norm"]).toBeGreaterThan(0);
      // While the critic warms up, the actor's logprobs are not needed.
      expect(training.scores).toHaveLength(Math.max(0, step - 4));
      expect("timing_s/old_log_prob" in metrics).toBe(step > 4);
      expect("actor/entropy" in metrics).toBe(step > 4);
      // A new head outputs 0 everywhere.
      if (step === 1) expect(metrics["critic/values/max"]).toBe(0);
      expect(metrics["critic/vf_explained_var"]).toBeLessThanOrEqual(1);
      expect(metrics["critic/advantages/mean"]).toBeCloseTo(0, 5);
      expect(metrics["critic/vf_clipfrac"]).toBeGreaterThanOrEqual(0);
    }
    expect(losses[3]).toBeLessThan(losses[0]! / 2);
  });
});

describe("a critic that warms up beside a KL in the reward", () => {
  it("still has the logprobs that the penalty is made of", async () => {
    const training = await open({
      algorithm: { adv_estimator: "gae", use_kl_in_reward: true },
      trainer: { critic_warmup: 1 },
    });
    const { metrics } = await take(training);
    expect(training.scores.map((s) => s.adapter ?? true)).toEqual([false]);
    expect(metrics["actor/reward_kl_penalty"]).toBe(0);
    expect(training.batches).toEqual([]);
  });
});

describe("KL in the reward", () => {
  it("is 0 for a new adapter; later it lowers rewards, and an adaptive coefficient follows it", async () => {
    const training = await open({
      actor: { optim: { lr: 5e-2 } },
      algorithm: {
        use_kl_in_reward: true,
        kl_penalty: "low_var_kl",
        kl_ctrl: { type: "adaptive", kl_coef: 0.5, target_kl: 1e-6, horizon: 24 },
      },
    });
    const first = (await take(training)).metrics;
    expect(first["actor/reward_kl_penalty"]).toBe(0);
    expect(first["actor/reward_kl_penalty_coeff"]).toBe(0.5);
    expect(first["critic/rewards/mean"]).toBeCloseTo(first["critic/score/mean"]!, 6);
    // 12 trajectories, horizon 24: 0.5 x (1 - 0.2 / 2), then it rises again.
    const second = (await take(training, 2)).metrics;
    expect(second["actor/reward_kl_penalty_coeff"]).toBeCloseTo(0.45, 9);
    expect(second["actor/reward_kl_penalty"]).toBeGreaterThan(1e-4);
    expect(second["critic/rewards/mean"]).toBeLessThan(second["critic/score/mean"]!);
    expect(training.klController.coefficient).toBeCloseTo(0.45 * 1.1, 9);
    expect(training.scores.map((s) => s.adapter ?? true)).toEqual([false, false]);
  });
});

describe("a resumed run", () => {
  it("goes on with the coefficient of the KL, the prompts and the draws of an uninterrupted one", async () => {
    const options: TinyTrainingOptions = {
      prompts: ["a", "bb", "ccc", "dddd", "eeeee"],
      reward: "return text.length % 2;",
      data: { train_batch_size: 2 },
      rollout: { n: 3 },
      actor: { optim: { lr: 3e-2 }, policy_loss: { loss_mode: "clip_cov", clip_cov_ratio: 0.1, clip_cov_lb: 0 } },
      algorithm: {
        use_kl_in_reward: true,
        kl_ctrl: { type: "adaptive", kl_coef: 0.1, target_kl: 1e-4, horizon: 50 },
        filter_groups: { enable: true, max_num_gen_batches: 2 },
      },
      trainer: { total_training_steps: 4, save_freq: 1 },
    };
    const train = async (training: TinyTraining, until: number) => {
      training.settings.steps = until;
      return (await runTraining(training)).steps.map(dropTimes);
    };
    const whole = await train(await open(options), 4);
    const first = await open(options);
    const parts = await train(first, 2);
    const again = await open(options);
    again.config = first.config;
    parts.push(...(await train(again, 4)));
    expect(parts).toEqual(whole);
    expect(new Set(whole.map((m) => m["actor/reward_kl_penalty_coeff"])).size).toBe(4);
    expect(whole.map((m) => m["train/num_gen_batches"])).toContain(2);
  });
});

describe("rollout correction", () => {
  it("weighs by ratios that are 1 here: the same update as without", async () => {
    const norms = [];
    for (const rollout_is of [null, "token", "sequence"]) {
      const training = await open({ algorithm: { rollout_correction: { rollout_is } } });
      const { metrics } = await take(training);
      norms.push(metrics["actor/grad_norm"]!);
      expect(Math.abs(metrics["rollout_corr/kl"]!)).toBeLessThan(1e-4);
      expect(metrics["rollout_corr/k3_kl"]).toBeGreaterThanOrEqual(0);
      expect(metrics["rollout_corr/rollout_is_mean"] ?? 1).toBeCloseTo(1, 3);
      expect(metrics["rollout_corr/rollout_is_eff_sample_size"] ?? 1).toBeCloseTo(1, 3);
      expect(metrics["training/rollout_actor_probs_pearson_corr"]).toBeCloseTo(1, 4);
    }
    for (const norm of norms) expect(Math.abs(norm - norms[0]!) / norms[0]!).toBeLessThan(1e-3);
  });

  it("rejects outliers from the loss and from its denominators", async () => {
    // The sampler is wrong about every second token.
    const rollout_correction = { rollout_rs: "token", rollout_rs_threshold: 1.05 };
    const training = await open({ actor: { old_log_prob: "separate" }, algorithm: { rollout_correction } });
    const { trajectories, metrics } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
      onTrajectory: ({ rolloutLogprobs }) => {
        for (let t = 1; t < rolloutLogprobs.length; t += 2) rolloutLogprobs[t]! -= 0.1;
      },
    });
    const fraction = metrics["rollout_corr/rollout_rs_masked_fraction"]!;
    expect(fraction).toBeGreaterThan(0.1);
    const kept = training.batches.flat().reduce((sum, s) => sum + Array.from(s.lossMask).filter(Boolean).length, 0);
    const sampled = trajectories.reduce((sum, t) => sum + t.responseMask.filter(Boolean).length, 0);
    expect(kept / sampled).toBeCloseTo(1 - fraction, 6);
  });

  /** Takes a step on a batch in which the middle one of three groups has wrong sampler logprobs and equal rewards. */
  const takeWithOddGroup = async (rollout_correction: Record<string, unknown>, actor: Record<string, unknown>) => {
    const training = await open({
      reward: 'if (truth === "bb") return 1; return [...text].filter((c) => c.charCodeAt(0) < 128).length;',
      algorithm: { rollout_correction },
      actor: { optim: { lr: 1e-2 }, old_log_prob: "separate", ...actor },
    });
    const { trajectories, metrics } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
      onTrajectory: ({ rowIndex, rolloutLogprobs }) => {
        if (rowIndex === 1) for (let t = 0; t < rolloutLogprobs.length; t++) rolloutLogprobs[t]! += t % 2 ? 12 : 0;
      },
    });
    return { training, trajectories, metrics };
  };

  it.each([
    ["no correction", {}, null],
    ["a veto", { rollout_token_veto_threshold: 1e-4 }, "rollout_is_veto_fraction"],
    ["normalised weights", { rollout_is: "token", rollout_is_batch_normalize: true }, "rollout_is_batch_norm_factor"],
  ] as const)("with %s updates alike, whether or not a group without advantage is evaluated anyway", async (...row) => {
    const [, correction, metric] = row;
    const lean = await takeWithOddGroup(correction, {});
    // Neither changes any gradient.
    for (const actor of [{ entropy_coeff: 1e-12 }, { skip_zero_advantage: false }]) {
      const whole = await takeWithOddGroup(correction, actor);
      const [a, b] = [lean, whole].map(({ metrics }) => metrics["actor/grad_norm"]!);
      expect(Math.abs(a! - b!) / b!).toBeLessThan(1e-5);
      if (!metric) continue;
      const name = `rollout_corr/${metric}`;
      expect(lean.metrics[name]).toBe(whole.metrics[name]);
    }
    // The odd group has an effect: a third of the sequences, or smaller weights.
    if (metric)
      expect(Math.abs(lean.metrics[`rollout_corr/${metric}`]! - (metric.includes("veto") ? 0 : 1))).toBeGreaterThan(
        0.1,
      );
  });

  it("reports the share of the batch that the sampler's diagnostics are about", async () => {
    const lean = (await takeWithOddGroup({}, {})).metrics;
    const whole = (await takeWithOddGroup({}, { skip_zero_advantage: false })).metrics;
    expect(lean["training/evaluated_ratio"]).toBeGreaterThan(0.4);
    expect(lean["training/evaluated_ratio"]).toBeLessThan(0.9);
    expect(whole["training/evaluated_ratio"]).toBe(1);
    // Only the whole batch has seen the odd group.
    expect(Math.abs(lean["rollout_corr/kl"]!)).toBeLessThan(1e-4);
    expect(whole["rollout_corr/kl"]).toBeGreaterThan(1);
    expect(whole["actor/entropy"]).not.toBe(lean["actor/entropy"]);
    // The batch is evaluated for another reason: the diagnostics include all of it, and the update still excludes
    // trajectories without advantage.
    const training = await open({
      reward: ONE_GROUP_DIFFERS,
      actor: { old_log_prob: "separate" },
      algorithm: { use_kl_in_reward: true, kl_ctrl: { kl_coef: 0 } },
    });
    const { metrics } = await take(training);
    expect(metrics["training/evaluated_ratio"]).toBe(1);
    expect(training.batches.map((batch) => batch.length <= 4)).toEqual([true]);
  });

  it("estimates the spread of the differences of probabilities without a bias", async () => {
    const { training, trajectories, metrics } = await takeWithOddGroup({}, { skip_zero_advantage: false });
    const differences: number[] = [];
    for (const { tokenIds, columns } of training.batches.flat()) {
      const t = trajectories.find((other) => other.tokenIds.join() === Array.from(tokenIds).join())!;
      t.responseMask.forEach((bit, k) => {
        if (bit) differences.push(Math.abs(Math.exp(columns!.oldLogprobs![k]!) - Math.exp(t.rolloutLogprobs[k]!)));
      });
    }
    const mean = differences.reduce((a, b) => a + b, 0) / differences.length;
    const squares = differences.reduce((sum, d) => sum + (d - mean) ** 2, 0);
    expect(metrics["training/rollout_probs_diff_mean"]! / mean).toBeCloseTo(1, 9);
    const ratio = metrics["training/rollout_probs_diff_std"]! / Math.sqrt(squares / (differences.length - 1));
    expect(ratio).toBeCloseTo(1, 9);
    expect(metrics["training/rollout_probs_diff_valid"]).toBe(1);
    // Nothing is evaluated if no trajectory has an advantage.
    const { metrics: none } = await take(await open({ reward: "return 1;" }));
    expect(none["training/rollout_probs_diff_valid"]).toBe(0);
    expect(none["training/rollout_probs_diff_std"]).toBeUndefined();
  });

  it("with bypass_mode takes the sampler's logprobs as they are, and evaluates nothing before the update", async () => {
    const training = await open({ algorithm: { rollout_correction: { bypass_mode: true } } });
    const { trajectories, metrics } = await take(training);
    expect(training.scores).toEqual([]);
    expectColumns(
      training,
      "oldLogprobs",
      (values, t) => expect(values).toEqual([...t.rolloutLogprobs].filter((_, i) => t.responseMask[i])),
      trajectories,
    );
    expect(metrics["actor/entropy"]).toBeGreaterThan(0);
    // The loss compares the current policy with the sampler.
    expect(Math.abs(metrics["rollout_corr/kl"]!)).toBeLessThan(1e-4);
    expect(metrics["rollout_corr/training_ppl"]! / metrics["rollout_corr/rollout_ppl"]!).toBeCloseTo(1, 4);
    expect(metrics["rollout_corr/rollout_is_mean"]).toBeUndefined();
    const usual = (await take(await open())).metrics;
    expect(metrics["actor/grad_norm"]! / usual["actor/grad_norm"]!).toBeCloseTo(1, 3);
  });

  it.each([
    ["ppo_clip", { rollout_rs: "seq_mean_k2", rollout_rs_threshold: 1e-7 }],
    ["reinforce", { rollout_is: "sequence" }],
    ["reinforce", { rollout_is: "token", rollout_is_batch_normalize: true, rollout_rs: "token_k3,token_k1" }],
  ] as const)("with bypass_mode and loss_type %s corrects by %j, with any size of micro-batches", async (...row) => {
    const [loss_type, correction] = row;
    const rollout_rs_threshold = "rollout_is_batch_normalize" in correction ? "1e-6,0.5_2" : null;
    const rollout_correction = { bypass_mode: true, loss_type, rollout_rs_threshold, ...correction };
    const results = [];
    for (const ppo_max_token_len of [64, 100_000]) {
      const training = await open({
        // In the second update the policy is no longer the sampler.
        actor: { ppo_max_token_len, ppo_epochs: 2, optim: { lr: 3e-3 } },
        algorithm: { rollout_correction },
      });
      const { metrics } = await take(training);
      // Normalised weights require a pass over the mini-batch before each update; nothing else does.
      expect(training.scores).toHaveLength("rollout_is_batch_normalize" in correction ? 2 : 0);
      expect(metrics["rollout_corr/k3_kl"]).toBeGreaterThan(0);
      if ("rollout_rs" in correction) {
        const share = metrics["rollout_corr/rollout_rs_masked_fraction"]!;
        expect(share).toBeGreaterThan(0.1);
        expect(share).toBeLessThan(0.95);
      }
      expect("rollout_corr/rollout_is_mean" in metrics).toBe("rollout_is" in correction);
      expect(Object.keys(metrics).filter((name) => name.startsWith("actor/rollout_corr"))).toEqual([]);
      results.push(metrics);
    }
    for (const name of ["actor/grad_norm", "actor/pg_loss", "rollout_corr/k3_kl", "rollout_corr/chi2_seq"]) {
      const [a, b] = results.map((metrics) => metrics[name]!);
      expect(Math.abs(a! - b!) / (Math.abs(b!) + 1e-3), name).toBeLessThan(1e-4);
    }
  });
});

describe("policy filtration", () => {
  it("trains on as many conversations, drawn by their scores, the critic as well", async () => {
    const training = await open({
      reward: 'return truth === "bb" ? 0 : text.length % 2;',
      algorithm: { adv_estimator: "gae", use_pf_ppo: true, pf_ppo: { weight_pow: 1 } },
    });
    const { trajectories, metrics } = await take(training);
    const batch = training.batches.flat();
    const rewards = batch.map(
      ({ tokenIds }) => trajectories.find((t) => t.tokenIds.join() === Array.from(tokenIds).join())!.reward,
    );
    // A score of 0 has no weight.
    expect(new Set(rewards)).toEqual(new Set([1]));
    expect(batch).toHaveLength(12);
    const kept = metrics["train/pf_ppo_kept_ratio"]!;
    expect(kept).toBeLessThan(1);
    expect(kept).toBeCloseTo(new Set(batch.map(({ tokenIds }) => Array.from(tokenIds).join())).size / 12, 9);
    expect(metrics["critic/vpred_mean"]).toBe(0);
    const again = await open({
      reward: 'return truth === "bb" ? 0 : text.length % 2;',
      algorithm: { adv_estimator: "gae", use_pf_ppo: true, pf_ppo: { reweight_method: "max_min" } },
    });
    const other = (await take(again)).metrics;
    expect(other["train/pf_ppo_kept_ratio"]).not.toBe(kept);
  });
});

describe("group filter", () => {
  const filtering = (filter_groups: Record<string, unknown>) =>
    open({ reward: ONE_GROUP_DIFFERS, algorithm: { filter_groups: { enable: true, ...filter_groups } } });
  const rename = (row: DatasetRow, uid: string): DatasetRow => ({ ...row, uid });

  it("replaces groups whose rewards are all equal by fresh prompts", async () => {
    const training = await filtering({});
    const [varying, ...rest] = training.trainRows;
    // Each fresh batch has one prompt that varies.
    let asked = 0;
    const next = () => {
      asked++;
      return [rename(rest[0]!, `same ${asked}`), rename(varying!, `fresh ${asked}`)];
    };
    const { trajectories, metrics } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
      nextRows: next,
    });
    expect([...new Set(trajectories.map((t) => t.uid))]).toEqual([varying!.uid, "fresh 1", "fresh 2"]);
    expect(trajectories).toHaveLength(12);
    expect(metrics["train/num_gen_batches"]).toBe(3);
  });

  it("learns from the groups that vary most, and replaces none of the others", async () => {
    // Values of the groups: equal, 0 and 1, 0 and 3.
    const reward = "return truth.length === 1 ? 1 : (truth.length === 2 ? 1 : 3) * (text.length % 2);";
    const uidsOf = async (filter_groups: Record<string, unknown>) => {
      const training = await open({ reward, algorithm: { filter_groups: { enable: true, ...filter_groups } } });
      const { trajectories, leftOut } = await take(training);
      const shown = (of: readonly { uid: string }[]) => [...new Set(of.map(({ uid }) => uid))];
      const uids = training.trainRows.map(({ uid }) => uid);
      const places = (of: readonly { uid: string }[]) =>
        shown(of)
          .map((uid) => uids.indexOf(uid))
          .sort();
      return { kept: places(trajectories), leftOut: places(leftOut) };
    };
    expect(await uidsOf({})).toEqual({ kept: [1, 2], leftOut: [0] });
    expect(await uidsOf({ variance_share: 0.8 })).toEqual({ kept: [2], leftOut: [0, 1] });
    expect(await uidsOf({ variance_share: 1 })).toEqual({ kept: [1, 2], leftOut: [0] });
    expect(await uidsOf({ min_spread: 1 })).toEqual({ kept: [2], leftOut: [0, 1] });
  });

  it("counts the tokens of the groups that it left out as sampled", async () => {
    const training = await filtering({});
    const { trajectories, leftOut, metrics } = await take(training);
    const tokens = (of: readonly Trajectory[]) => of.reduce((sum, t) => sum + t.metrics.decode_tokens!, 0);
    expect(tokens(leftOut)).toBeGreaterThan(0);
    expect(metrics["engine/decode_tokens"]).toBe(tokens(trajectories) + tokens(leftOut));
  });

  it("goes on with its groups after max_num_gen_batches, or when no prompt is fresh", async () => {
    for (const [max_num_gen_batches, batches] of [
      [2, 2],
      [0, 1],
    ] as const) {
      const training = await filtering({ max_num_gen_batches });
      const [varying, ...rest] = training.trainRows;
      let asked = 0;
      const next = () =>
        max_num_gen_batches ? rest.map((row) => rename(row, `${row.uid} ${asked++}`)) : training.trainRows;
      const { trajectories, metrics } = await runTrainingStep(training, {
        rows: training.trainRows,
        step: 1,
        epoch: 0,
        nextRows: next,
      });
      expect(new Set(trajectories.map((t) => t.uid))).toEqual(new Set([varying!.uid]));
      expect(metrics["train/num_gen_batches"]).toBe(batches);
      expect(training.batches).toHaveLength(1);
    }
  });

  it("takes no update where no group has anything to teach, and still has metrics", async () => {
    const training = await open({ reward: "return 1;", algorithm: { filter_groups: { enable: true } } });
    const { trajectories, metrics } = await take(training);
    expect(training.batches).toEqual([]);
    expect(trajectories).toHaveLength(12);
    expect(metrics["critic/score/mean"]).toBe(1);
  });

  it("filters by a value that the reward function returns; an error names a missing one", async () => {
    const reward = "return { score: text.length, acc: truth === 'bb' ? text.length % 2 : 0 };";
    const training = await open({ reward, algorithm: { filter_groups: { enable: true, metric: "acc" } } });
    const { trajectories } = await take(training);
    for (const t of trajectories) expect(t.uid).toBe(training.trainRows[1]!.uid);
    await expect(take(await filtering({ metric: "accuracy" }))).rejects.toMatchObject({
      subject: expect.stringContaining('filter_groups.metric "accuracy"'),
    });
  });
});

describe("algorithms of one's own", () => {
  it("get a critic's values and greedy baselines where they ask for them", async () => {
    const inputs: AdvantageInputs[] = [];
    const spy = (name: string, needs?: readonly CostlyInput[]) => {
      const estimate = (given: AdvantageInputs) => {
        inputs.push(given);
        return estimateReinforcePlusPlus(given);
      };
      advantageEstimators.register(name, needs ? Object.assign(estimate, { needs }) : estimate);
      return { algorithm: { adv_estimator: name }, actor: { optim: { lr: 1e-2 } } };
    };
    const plain = await open(spy("spy-plain"));
    expect(plain.critic).toBeNull();
    await take(plain);
    expect(inputs[0]).toMatchObject({ values: undefined, baselines: undefined });

    const both = await open(spy("spy-both", ["values", "baselines"]));
    expect(both.critic).not.toBeNull();
    const first = await take(both);
    expect(first.metrics["critic/vf_loss"]).toBeGreaterThan(0);
    await take(both, 2);
    const [, , second] = inputs;
    expect(second!.values).toHaveLength(second!.responseMask.length);
    expect(Array.from(second!.values!).some((value) => value !== 0)).toBe(true);
    expect(second!.baselines).toHaveLength(12);
    // Samples of a prompt share one greedy rollout.
    for (const [i, group] of second!.groups.entries())
      expect(second!.baselines![i]).toBe(second!.baselines![second!.groups.indexOf(group)]);
    expect(new Set(Array.from(second!.baselines!)).size).toBeGreaterThan(1);

    const greedy = await open(spy("spy-greedy", ["baselines"]));
    expect(greedy.critic).toBeNull();
    await take(greedy);
    expect(inputs[3]).toMatchObject({ values: undefined });
    expect(inputs[3]!.baselines).toHaveLength(12);
  });

  it("are named in the config as module#export, TypeScript included", async () => {
    const { config, folder } = await writeTinyRun(models);
    writeFileSync(
      join(folder, "mine.ts"),
      `import { type AdvantageEstimator, estimateGrpo, policyLosses } from "@cria/algorithms";
       export const halved: AdvantageEstimator = (inputs) => {
         const { advantages, returns } = estimateGrpo(inputs);
         return { advantages: advantages.map((a) => a / 2), returns, metrics: { mine: 7 } };
       };
       export const greedy = Object.assign((inputs) => halved(inputs), { needs: ["rewards"] });
       export const loss = { ...policyLosses.get("gpg") };
       export const oops = 3;`,
    );
    config.algorithm.adv_estimator = "./mine.ts#halved";
    config.actor_rollout_ref.actor.policy_loss.loss_mode = "./mine.ts#loss";
    const training = await openTraining(config, folder);
    try {
      const { metrics } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
      expect(metrics["critic/mine"]).toBe(7);
      expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
    } finally {
      await training.dispose();
    }
    for (const [name, details] of [
      [
        "./mine.ts#greedy",
        {
          code: "config/bad-value",
          expected: expect.stringMatching(/`needs`.* values, baselines, sumPiSquared, rewardParts/),
        },
      ],
      ["./mine.ts#oops", { code: "config/bad-value", received: "number" }],
      ["./mine.ts#missing", { code: "config/unreadable", received: expect.stringContaining("halved") }],
      ["./none.ts#x", { code: "config/unreadable" }],
    ] as const) {
      config.algorithm.adv_estimator = name;
      await expect(openTraining(config, folder), name).rejects.toMatchObject(details);
    }
  });
});
