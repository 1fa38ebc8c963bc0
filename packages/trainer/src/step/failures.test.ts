import { advantageEstimators, defineEstimator } from "@cria/algorithms";
import { hasFailed, type Trajectory } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import type { Judgement, RewardManager, RewardRequest } from "@cria/rollout";
import { BaseInteraction, type InteractionReply } from "@cria/tools";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openTinyTraining, type TinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { readSuccess, validate } from "../validation/validate.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
beforeEach(() => void vi.spyOn(process.stderr, "write").mockImplementation(() => true));
afterEach(() => vi.restoreAllMocks());

const take = (training: TinyTraining, step = 1) =>
  runTrainingStep(training, { rows: training.trainRows, step: step, epoch: 0 });
const sum = (values: ArrayLike<number>) => Array.from(values).reduce((a, b) => a + b, 0);

/** Reward by row and sample; null: the judge fails. */
type Judge = (row: number, sample: number, request: RewardRequest) => number | null;

/** A training whose judge is scripted. */
async function open(judge: Judge, options: TinyTrainingOptions = {}): Promise<TinyTraining> {
  // gdpo needs the names of the reward's parts; here the score is the only one.
  const { algorithm } = options;
  const parts = algorithm?.adv_estimator === "gdpo" ? { gdpo_reward_keys: ["score"] } : {};
  const training = await openTinyTraining(models, { ...options, algorithm: { ...algorithm, ...parts } });
  const reward: RewardManager = {
    granularity: "sample",
    judge: async (requests) =>
      requests.map((request): Judgement => {
        const [, row, sample] = /^row (\d+) .* sample (\d+)$/.exec(request.place)!;
        const score = judge(Number(row), Number(sample), request);
        return score === null ? { error: "HTTP 503", extra: {} } : { score, extra: {} };
      }),
  };
  training.environment.reward = reward;
  return training;
}

/** Names a trajectory by its tokens: no two trajectories have the same. */
const name = (tokenIds: ArrayLike<number>) => Array.from(tokenIds).join();

function expectNothingOf(training: TinyTraining, failed: readonly Trajectory[]): void {
  const trained = training.batches.flat().map(({ tokenIds }) => name(tokenIds));
  for (const t of failed) expect(trained).not.toContain(name(t.tokenIds));
}

const comparing = [
  "gdpo",
  "gigpo",
  "gpg",
  "grpo",
  "grpo_passk",
  "grpo_vectorized",
  "max_rl",
  "mt_grpo",
  "opo",
  "optimal_token_baseline",
  "reinforce_plus_plus_baseline",
  "rloo",
  "rloo_vectorized",
  "tir_optimal_token_baseline",
];

describe("a failed sample moves no baseline", () => {
  it("estimators that compare inside a group say so", () => {
    const names = advantageEstimators.names().filter((name) => advantageEstimators.get(name).comparesGroup);
    // The last two have further conversations, which fail in tests of their own (run/trees.test.ts, turn-values.test.ts).
    expect(names.sort()).toEqual([...comparing, "tree_grpo", "vine"].sort());
  });

  it.each(comparing)(
    "%s: rewards 1, 1, 1 and a failure, or -1, -1, -1 and a failure, teach nothing",
    async (adv_estimator) => {
      for (const reward of [1, -1]) {
        const training = await open((_, sample) => (sample === 2 ? null : reward), { algorithm: { adv_estimator } });
        const { trajectories, metrics } = await take(training);
        expect(trajectories.filter(hasFailed)).toHaveLength(3);
        expect(training.batches).toEqual([]);
        for (const name of ["score", "rewards"])
          for (const statistic of ["mean", "min", "max"]) expect(metrics[`critic/${name}/${statistic}`]).toBe(reward);
        for (const statistic of ["min", "max"]) expect(metrics[`critic/advantages/${statistic}`]).toBe(0);
        expect(metrics).toMatchObject({
          "rollout/failed": 3,
          "rollout/failed_ratio": 0.25,
          "rollout/dropped_groups": 0,
          "rollout/kept": 9,
          "response/aborted_ratio": 0,
        });
      }
    },
  );

  // Each estimator's advantages for the survivors' rewards 1, 2 and 4 of one prompt; they are outcomes, so all tokens
  // have the same.
  const [mean, std] = [7 / 3, Math.sqrt(7 / 3)];
  const expected: Record<string, (t: Trajectory, kept: Trajectory[]) => number> = {
    grpo: (t) => (t.reward - mean) / (std + 1e-6),
    grpo_passk: (t) => (t.reward === 4 ? 2 / (std + 1e-6) : 0),
    rloo: (t) => (3 / 2) * (t.reward - mean),
    opo: (t, kept) => {
      const lengths = kept.map((k) => sum(k.responseMask));
      return t.reward - kept.reduce((total, k, i) => total + lengths[i]! * k.reward, 0) / sum(lengths);
    },
    // All three rewards are not 0: a counted failure would make the factor 4 / 3.
    gpg: (t) => t.reward - mean,
    max_rl: (t) => (t.reward - mean) / mean,
    mt_grpo: (t) => (t.reward - mean) / (std + 1e-6),
    raft: (t) => (t.reward === 4 ? 1 : 0),
  };
  it.each(Object.keys(expected))(
    "%s: the survivors' advantages are those of a group without the failure",
    async (adv_estimator) => {
      const rewards = [1, null, 2, 4];
      const training = await open((_, sample) => rewards[sample]!, { algorithm: { adv_estimator }, prompts: ["a"] });
      const { trajectories } = await take(training);
      const kept = trajectories.filter((t) => !hasFailed(t));
      expect(kept.map((t) => t.reward)).toEqual([1, 2, 4]);
      const trained = new Map(training.batches.flat().map((s) => [name(s.tokenIds), s.columns!.advantages!]));
      for (const t of kept) {
        const want = expected[adv_estimator]!(t, kept);
        const column = trained.get(name(t.tokenIds));
        if (want === 0) expect(column).toBeUndefined();
        else for (let i = 0; i < column!.length; i++) expect(column![i]).toBeCloseTo(t.responseMask[i] ? want : 0, 5);
      }
      expectNothingOf(training, trajectories.filter(hasFailed));
    },
  );

  it.each(["reinforce_plus_plus", "reinforce_plus_plus_baseline"])(
    "%s: whitening knows the survivors alone",
    async (adv_estimator) => {
      const rewards = [1, null, 2, 4];
      const training = await open((_, sample) => rewards[sample]!, { algorithm: { adv_estimator }, prompts: ["a"] });
      const { trajectories, metrics } = await take(training);
      const kept = trajectories.filter((t) => !hasFailed(t));
      const flat = kept.flatMap((t) => Array(sum(t.responseMask)).fill(t.reward) as number[]);
      const average = sum(flat) / flat.length;
      const deviation = Math.sqrt(sum(flat.map((r) => (r - average) ** 2)) / (flat.length - 1) + 1e-8);
      expect(metrics["critic/advantages/mean"]).toBeCloseTo(0, 5);
      expect(metrics["critic/advantages/max"]).toBeCloseTo((4 - average) / deviation, 4);
      expect(metrics["critic/advantages/min"]).toBeCloseTo((1 - average) / deviation, 4);
      expect(metrics["rollout/kept"]).toBe(3);
    },
  );

  it("an interaction that cannot start for one of four: a 503 teaches nothing", async () => {
    class Down extends BaseInteraction {
      private started = 0;
      override async startInteraction() {
        if (this.started++ % 4 === 3) throw new Error("HTTP 503");
      }
      override async generateResponse(): Promise<InteractionReply> {
        return { shouldTerminate: true, content: "", score: 0 };
      }
      override async finalizeInteraction() {}
    }
    const training = await open(() => 1, { prompts: ["a"], algorithm: { filter_groups: { enable: true } } });
    training.environment.interactions = new Map([["test", new Down({}, "test")]]);
    const { trajectories, metrics } = await take(training);
    expect(trajectories.map((t) => t.error?.match(/HTTP 503/)?.[0] ?? t.reward).sort()).toEqual([1, 1, 1, "HTTP 503"]);
    expect(training.batches).toEqual([]);
    expect(metrics).toMatchObject({
      "critic/rewards/mean": 1,
      "rollout/failed": 1,
      "rollout/judge_failed": 0,
      "response/aborted_ratio": 0.25,
      "train/num_gen_batches": 1,
    });
  });
});

describe("a group of which fewer than two are left", () => {
  // Row 0 keeps one sample, row 1 none, row 2 two.
  const judge: Judge = (row, sample) => (sample <= [0, -1, 1][row]! ? sample + row : null);

  it.each(comparing)("%s: is dropped and counted", async (adv_estimator) => {
    const training = await open(judge, { algorithm: { adv_estimator } });
    const { trajectories, metrics } = await take(training);
    expect(metrics).toMatchObject({ "rollout/failed": 9, "rollout/dropped_groups": 2, "rollout/kept": 2 });
    expect(metrics["critic/rewards/mean"]).toBe(2.5);
    const trained = training.batches.flat().map(({ tokenIds }) => name(tokenIds));
    const left = trajectories
      .filter((t) => t.uid === training.trainRows[2]!.uid && !hasFailed(t))
      .map((t) => name(t.tokenIds));
    for (const tokens of trained) expect(left).toContain(tokens);
    expect(trained.length).toBeGreaterThan(0);
  });

  it.each(["gae", "reinforce_plus_plus"])("%s: loses the conversations alone", async (adv_estimator) => {
    const training = await open(judge, { algorithm: { adv_estimator } });
    const { metrics } = await take(training);
    expect(metrics).toMatchObject({ "rollout/failed": 9, "rollout/dropped_groups": 0, "rollout/kept": 3 });
    expect(training.batches.flat()).toHaveLength(3);
  });

  it("a user's own estimator says whether it compares", async () => {
    for (const comparesGroup of [true, false]) {
      const given = advantageEstimators.get("rloo");
      advantageEstimators.register(
        "own",
        defineEstimator({ comparesGroup, estimate: (inputs) => ({ advantages: given(inputs).advantages }) }),
      );
      const training = await open(judge, { algorithm: { adv_estimator: "own" } });
      const { metrics } = await take(training);
      expect(metrics["rollout/kept"]).toBe(comparesGroup ? 2 : 3);
    }
  });

  it("with one sample of each prompt there is nothing to drop", async () => {
    const training = await open((row) => (row === 1 ? null : row + 1), { rollout: { n: 1 } });
    const { metrics } = await take(training);
    expect(metrics).toMatchObject({ "rollout/failed": 1, "rollout/dropped_groups": 0, "rollout/kept": 2 });
    expect(training.batches.flat()).toHaveLength(2);
  });
});

describe("a step that failures leave nothing to learn from", () => {
  it.each([
    ["grpo", {}],
    ["rloo", { use_kl_in_reward: true, kl_ctrl: { type: "adaptive" } }],
    ["grpo", { filter_groups: { enable: true } }],
    ["grpo", { rollout_correction: { rollout_is: "token", rollout_rs: "sequence" } }],
  ] as const)("%s %j: takes no update, and says so", async (adv_estimator, more) => {
    const training = await open((_, sample) => (sample === 0 ? 1 : null), { algorithm: { adv_estimator, ...more } });
    const coefficient = training.klController.coefficient;
    const { trajectories, metrics } = await take(training);
    expect(trajectories).toHaveLength(12);
    expect(training.batches).toEqual([]);
    expect(training.klController.coefficient).toBe(coefficient);
    expect(metrics).toMatchObject({ "rollout/kept": 0, "rollout/dropped_groups": 3, "rollout/failed_ratio": 0.75 });
    expect(Object.values(metrics).filter((value) => !Number.isFinite(value))).toEqual([]);
    expect(Object.keys(metrics).filter((key) => /^(critic|reward|actor\/(pg|grad))/.test(key))).toEqual([]);
  });

  it("with a critic too: here none of an estimator that compares is left", async () => {
    const given = advantageEstimators.get("gae");
    const own = defineEstimator({ comparesGroup: true, needs: ["values"], estimate: given });
    advantageEstimators.register("comparing-gae", own);
    const training = await open((_, sample) => (sample === 0 ? 1 : null), {
      algorithm: { adv_estimator: "comparing-gae" },
    });
    const { metrics } = await take(training);
    expect(metrics["rollout/kept"]).toBe(0);
    expect(metrics["critic/grad_norm"]).toBeUndefined();
  });

  it("ends the run where every conversation failed, with the first causes", async () => {
    const training = await open(() => null);
    await expect(take(training)).rejects.toMatchObject({
      code: "rollout/all-failed",
      subject: "step 1",
      expected: expect.stringContaining("12 conversations"),
      received: expect.stringContaining("row 0, sample 0: HTTP 503"),
    });
  });
});

describe("failed conversations are left out of", () => {
  const oneFails: Judge = (row, sample, request) =>
    row === 0 && sample === 1 ? null : request.solutionText.length % 5;

  it("the denominators of the loss", async () => {
    const training = await open(oneFails);
    const { trajectories, metrics } = await take(training);
    let [loss, tokens] = [0, 0];
    for (const row of training.trainRows) {
      const group = trajectories.filter((t) => t.uid === row.uid && !hasFailed(t));
      const mean = sum(group.map((t) => t.reward)) / group.length;
      const std = Math.sqrt(sum(group.map((t) => (t.reward - mean) ** 2)) / (group.length - 1));
      for (const t of group) {
        tokens += sum(t.responseMask);
        loss -= (sum(t.responseMask) * (t.reward - mean)) / (std + 1e-6);
      }
    }
    expect(metrics["actor/pg_loss"]).toBeCloseTo(loss / tokens, 5);
  });

  it("the mean KL and the controller's number of trajectories", async () => {
    const algorithm = {
      use_kl_in_reward: true,
      kl_ctrl: { type: "adaptive", kl_coef: 0.5, target_kl: 1, horizon: 22 },
    };
    const training = await open(oneFails, { algorithm });
    await take(training);
    // A new adapter's KL is 0: the coefficient is 0.5 (1 - 0.2 · 11 / 22); with 12 trajectories it would be 0.5 (1 -
    // 0.2 · 12 / 22).
    expect(training.klController.coefficient).toBeCloseTo(0.45, 9);
  });

  it("a critic's updates and its targets", async () => {
    const training = await open(oneFails, { algorithm: { adv_estimator: "gae" } });
    const train = training.critic!.engine.train.bind(training.critic!.engine);
    const trained: string[] = [];
    training.critic!.engine.train = (sequences, ...rest) => {
      trained.push(...sequences.map(({ tokenIds }) => name(tokenIds)));
      return train(sequences, ...rest);
    };
    const { trajectories } = await take(training);
    expect(trained.sort()).toEqual(
      trajectories
        .filter((t) => !hasFailed(t))
        .map((t) => name(t.tokenIds))
        .sort(),
    );
    expect(trained).toHaveLength(11);
  });

  it("dynamic sampling: a failure makes no group varying, and a group with too few left is replaced", async () => {
    // Row 0: equal rewards and a failure. Row 1: one sample left. Row 2 and all fresh rows vary.
    const judge: Judge = (row, sample, request) => {
      if (request.dataSource !== "test") return sample;
      if (row === 0) return sample === 0 ? null : 1;
      return row === 1 ? (sample === 0 ? 1 : null) : sample;
    };
    const training = await open(judge, { algorithm: { filter_groups: { enable: true, metric: "score" } } });
    const fresh = training.trainRows.map((row) => ({ ...row, uid: `fresh ${row.uid}`, dataSource: "fresh" }));
    const { trajectories, metrics } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
      nextRows: () => fresh,
    });
    expect([...new Set(trajectories.map((t) => t.uid))]).toEqual([
      training.trainRows[2]!.uid,
      fresh[0]!.uid,
      fresh[1]!.uid,
    ]);
    expect(metrics).toMatchObject({
      "train/num_gen_batches": 2,
      "rollout/failed": 4,
      "rollout/failed_ratio": 4 / 24,
      "rollout/dropped_groups": 1,
      "rollout/kept": 12,
    });
  });

  it("validation, with their share beside the number", async () => {
    const training = await open((row, sample) => (row === 0 && sample === 0 ? null : 1), {
      data: { val_files: "rows.jsonl" },
    });
    const { success, failed, metrics } = await validate(training, { temperature: 1, n: 2, step: 0 });
    expect([success, failed]).toEqual([1, 1]);
    expect(metrics).toMatchObject({ "val-core/test/failed_ratio": 1 / 6, "val-core/test/reward/mean@2": 1 });
    const broken = await open(() => null, { data: { val_files: "rows.jsonl" } });
    const lost = await validate(broken, { temperature: 1, step: 7 });
    expect(lost).toMatchObject({ success: null, failed: 3, metrics: { "val-core/test/failed_ratio": 1 } });
    expect(() => readSuccess(lost, "mine")).toThrow(
      expect.objectContaining({
        code: "rollout/all-failed",
        subject: "mine",
        received: expect.stringContaining("row 0, sample 0: HTTP 503"),
      }),
    );
  });
});

describe("remax", () => {
  it("drops and counts a group whose greedy rollout failed: it has no baseline; others lose a failed sample alone", async () => {
    // Judges get 12 samples (order 0 to 11) and 3 greedy rollouts (order 0 to 2). Row 1's greedy rollout fails, and
    // three samples of row 2.
    const training = await open(
      (row, sample, { order }) => ((row === 1 && order === 1) || (row === 2 && sample > 0) ? null : 1 + (order % 4)),
      { algorithm: { adv_estimator: "remax" } },
    );
    const { trajectories, metrics } = await take(training);
    expect(trajectories.filter(hasFailed)).toHaveLength(3);
    expect(metrics).toMatchObject({ "rollout/failed": 3, "rollout/dropped_groups": 1, "rollout/kept": 5 });
    const dropped = trajectories.filter((t) => t.uid === training.trainRows[1]!.uid);
    expect(dropped).toHaveLength(4);
    expectNothingOf(training, dropped);
  });
});

describe("actor_rollout_ref.rollout.on_failure", () => {
  it("refill samples again; healthy conversations keep their tokens and their update", async () => {
    const plain = await open((_, sample) => sample);
    const healthy = await take(plain);
    let broken = 0;
    const training = await open((row, sample) => (row === 1 && sample === 2 && broken++ < 2 ? null : sample), {
      rollout: { on_failure: "refill" },
    });
    const { trajectories, metrics } = await take(training);
    expect(metrics).toMatchObject({ "rollout/failed": 0, "rollout/refilled": 2, "rollout/kept": 12 });
    const differs = trajectories.flatMap((t, i) =>
      name(t.tokenIds) === name(healthy.trajectories[i]!.tokenIds) ? [] : [i],
    );
    expect(differs).toEqual([6]);
    const untouched = await open((_, sample) => sample, { rollout: { on_failure: "refill" } });
    expect((await take(untouched)).metrics["actor/grad_norm"]).toBe(healthy.metrics["actor/grad_norm"]);
  });

  it("error ends the step before any update", async () => {
    const training = await open((row, sample) => (row === 1 && sample === 2 ? null : sample), {
      rollout: { on_failure: "error" },
    });
    await expect(take(training)).rejects.toMatchObject({
      code: "rollout/failed",
      subject: expect.stringMatching(/^row 1 .* sample 2$/),
      received: expect.stringContaining("HTTP 503"),
    });
    expect(training.batches).toEqual([]);
  });

  it("is one of three", async () => {
    await expect(open(() => 1, { rollout: { on_failure: "ignore" } })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: expect.stringContaining("on_failure"),
      received: '"ignore"',
    });
  });
});
