import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TrainSequence } from "@cria/core";
import { someOf } from "@cria/core/testing";
import { TinyModels } from "@cria/engine/testing";
import type { GroupRequest, GroupSampler, GroupSamplerOptions } from "@cria/rollout";
import { afterAll, describe, expect, it } from "vitest";
import { hashSync } from "../testing/hash-sync.js";
import { openTinyTraining, type TinyTrainingOptions, writeTinyRun } from "../testing/tiny-training.js";
import { openRegistries } from "../user-code/registries.js";
import { runTraining } from "./run-training.js";
import { TrainingInterrupted } from "./steps.js";
import { openTraining } from "./training.js";

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

/** Trains until an interruption in a step, and then the rest with all that was loaded anew. */
async function trainInterrupted(at: number, makeOptions: () => TinyTrainingOptions) {
  const controller = new AbortController();
  const interrupted = await openTinyTraining(models, { ...makeOptions(), signal: controller.signal });
  const afterStep = async () => {
    if (interrupted.policy.updates === at) controller.abort(new Error("interrupted"));
  };
  const training = runTraining(interrupted, { configFolder: interrupted.folder, afterStep });
  await expect(training).rejects.toThrow(TrainingInterrupted);
  await interrupted.dispose();
  const again = await openTinyTraining(models, makeOptions());
  again.config.trainer.default_local_dir = interrupted.config.trainer.default_local_dir;
  again.config.actor_rollout_ref.model.path = interrupted.config.actor_rollout_ref.model.path;
  try {
    const { weights, steps } = await runTraining(again, { configFolder: again.folder });
    return { steps, sha: hashSync(weights), folder: interrupted.folder };
  } finally {
    await again.dispose();
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
      const { steps, sha } = await trainInterrupted(at, () => options(replay, { lag }));
      expect(steps).toHaveLength(STEPS - at);
      expect(sha).toBe(whole.sha);
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

/** Makes a sampler that picks each group once, the oldest first, and records its requests. */
function makeOnce(requests: GroupRequest[] = [], made: GroupSamplerOptions[] = []) {
  return class Once implements GroupSampler {
    private used: string[] = [];
    constructor(options: GroupSamplerOptions) {
      made.push(options);
    }
    pick(request: GroupRequest) {
      requests.push(request);
      const { groups, count } = request;
      const name = (index: number) => `${groups[index]!.uid} ${groups[index]!.step}`;
      const picked = [...groups.keys()].filter((index) => !this.used.includes(name(index))).slice(0, count);
      this.used.push(...picked.map(name));
      return picked;
    }
    save() {
      return { used: this.used };
    }
    restore(state: unknown) {
      ({ used: this.used } = state as { used: string[] });
    }
  };
}

describe("algorithm.replay.sampling of a user", () => {
  const replay = { share: 1, sampling: "mine" };
  const ownOptions = (sampler: unknown, more: Parameters<typeof options>[1] = {}, given: object = replay) => {
    const registries = openRegistries();
    registries.groupSamplers.register("mine", sampler as never);
    return { ...options(given, more), registries };
  };
  const trainOwn = (sampler: unknown, more: Parameters<typeof options>[1] = {}) =>
    train(replay, { ...more, registries: ownOptions(sampler).registries });

  it("chooses the groups of each step: their rewards, ages and rows, and a seed", async () => {
    const requests: GroupRequest[] = [];
    const { steps } = await trainOwn(makeOnce(requests));
    // The first step has nothing to choose from.
    expect(requests.map(({ step }) => step)).toEqual([2, 3, 4, 5]);
    expect(new Set(requests.map(({ seed }) => seed)).size).toBe(4);
    for (const { step, count, groups } of requests) {
      expect(count).toBe(2);
      expect(groups).toHaveLength(2 * (step - 1));
      expect(groups.map((group) => group.age)).toEqual(groups.map((group) => step - group.step));
      expect([...groups].sort((a, b) => a.step - b.step)).toEqual(groups);
    }
    const [{ groups }] = requests as [GroupRequest];
    const rewards = groups.flatMap((group) => group.rewards);
    expect(rewards).toHaveLength(8);
    const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
    expect(mean).toBeCloseTo(steps[0]!["critic/score/mean"]!, 6);
    const tokens = groups.flatMap((group) => group.tokens);
    expect(tokens.reduce((a, b) => a + b, 0) / 8).toBeCloseTo(steps[0]!["response_length/mean"]!, 6);
    // Each group once, the oldest first.
    expect(steps.map((metrics) => metrics["replay/age/max"])).toEqual([undefined, 1, 1, 1, 1]);
    expect(steps.map((metrics) => metrics["replay/groups"])).toEqual([0, 2, 2, 2, 2]);
  });

  it("may be the built-in choice again, to equal bits, or choose nothing", async () => {
    const newest = ({ groups, count }: GroupRequest) => [...groups.keys()].reverse().slice(0, count);
    expect((await trainOwn(newest)).sha).toBe((await train({ share: 1, sampling: "newest" })).sha);
    const none = await trainOwn(() => []);
    expect(none.steps.map((metrics) => metrics["replay/groups"])).toEqual([0, 0, 0, 0, 0]);
    expect(none.sha).not.toBe((await trainOwn(newest)).sha);
  });

  const interruptions: [lag: number, at: number][] = [
    [1, 3],
    [0, 2],
    [0, 4],
  ];
  it.each(someOf(interruptions))(
    "with a lag of %i, interrupted in step %i, goes on with its state to equal bits",
    async (lag, at) => {
      const whole = await trainOwn(makeOnce(), { lag });
      const { steps, sha, folder } = await trainInterrupted(at, () => ownOptions(makeOnce(), { lag }));
      expect(steps).toHaveLength(STEPS - at);
      expect(sha).toBe(whole.sha);
      const [data] = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
        name.endsWith(join(`global_step_${at}`, "data.json")),
      );
      const saved = JSON.parse(readFileSync(join(folder, data!), "utf8")).data;
      const { name, state } = saved.group_sampler;
      expect(name).toBe("algorithm.replay.sampling mine");
      expect(state.used).toHaveLength(2 * (at - 1));
      // A sampler that forgot what it had used would train another adapter.
      class Forgets extends makeOnce() {
        override restore() {}
      }
      expect((await trainInterrupted(at, () => ownOptions(Forgets, { lag }))).sha).not.toBe(whole.sha);
    },
  );

  it("is a module's class or function, made with the options and seed of the config", async () => {
    const file = `
      export class Mine {
        constructor(options) { globalThis.seenByGroups = options; }
        pick({ groups, count }) { return [...groups.keys()].reverse().slice(0, count); }
      }
      export const pick = ({ groups, count, kwargs }) => kwargs.newest ? [...groups.keys()].reverse().slice(0, count) : [];`;
    const shas: string[] = [];
    for (const name of ["Mine", "pick"]) {
      const given = { share: 1, sampling: `./groups.mjs#${name}`, sampling_kwargs: { newest: true } };
      const { config, folder } = await writeTinyRun(models, options(given));
      writeFileSync(join(folder, "groups.mjs"), file);
      const opened = await openTraining(config, folder);
      const { weights } = await runTraining(opened, { configFolder: folder });
      await opened.dispose();
      shas.push(hashSync(weights));
    }
    const { seenByGroups: seen } = globalThis as unknown as { seenByGroups: GroupSamplerOptions };
    delete (globalThis as { seenByGroups?: unknown }).seenByGroups;
    expect(seen).toEqual({ seed: 1, kwargs: { newest: true } });
    const { config, folder } = await writeTinyRun(models, options({ share: 1, sampling: "newest" }));
    const opened = await openTraining(config, folder);
    const { weights } = await runTraining(opened, { configFolder: folder });
    await opened.dispose();
    expect(shas).toEqual([hashSync(weights), hashSync(weights)]);
  });

  it.each<[string, unknown]>([
    [
      "throws",
      () => {
        throw new Error("broken");
      },
    ],
    ["picks nonsense", () => ["a"]],
    ["picks what is not there", ({ groups }: GroupRequest) => [groups.length]],
  ])("that %s ends the run with its name and step", async (_, sampler) => {
    await expect(trainOwn(sampler)).rejects.toMatchObject({
      code: "data/bad-pick",
      subject: "algorithm.replay.sampling mine: step 2",
    });
  });

  it("whose state no file holds, or is another's, is refused", async () => {
    class Unsaved extends makeOnce() {
      override save() {
        return { used: new Set() } as never;
      }
    }
    await expect(trainOwn(Unsaved)).rejects.toMatchObject({ code: "data/bad-sampler-state" });
    const makeOptions = (name: string) => {
      const made = options({ share: 1, sampling: name });
      const registries = openRegistries();
      registries.groupSamplers.register(name, makeOnce() as never);
      return { ...made, registries };
    };
    const names = ["mine", "other"];
    await expect(trainInterrupted(2, () => makeOptions(names.shift()!))).rejects.toMatchObject({
      code: "data/checkpoint-mismatch",
    });
  });

  it.each<[string, object, object]>([
    ["an unknown name", { share: 1, sampling: "oldest" }, { code: "config/unknown-name" }],
    ["a module that is not there", { share: 1, sampling: "./none.mjs#Mine" }, { code: "config/unreadable" }],
    ["an export that samples nothing", { share: 1, sampling: "./reward.mjs#none" }, { code: "config/unreadable" }],
    ["no buffer to choose from", { share: 0, sampling: "./groups.mjs#Mine" }, { code: "config/bad-value" }],
    [
      "options of a built-in sampler",
      { share: 1, sampling: "newest", sampling_kwargs: { a: 1 } },
      { code: "config/bad-value", subject: "algorithm.replay.sampling_kwargs.a" },
    ],
  ])("refuses %s before a model is loaded", async (_, given, error) => {
    const { config, folder } = await writeTinyRun(models, options(given));
    config.actor_rollout_ref.model.path = "none.gguf";
    await expect(openTraining(config, folder)).rejects.toMatchObject(error);
  });

  it("refuses a class that samples nothing, or throws, before a model is loaded", async () => {
    const open = async (sampler: unknown) => {
      const { registries, ...made } = ownOptions(sampler);
      const { config, folder } = await writeTinyRun(models, made);
      config.actor_rollout_ref.model.path = "none.gguf";
      return openTraining(config, folder, { registries });
    };
    await expect(open(class Nothing {})).rejects.toMatchObject({
      code: "config/bad-sampler",
      subject: "algorithm.replay.sampling mine",
    });
    const refuse = class {
      constructor() {
        throw new RangeError("keep must be positive");
      }
      pick() {}
    };
    await expect(open(refuse)).rejects.toThrow("keep must be positive");
  });
});
