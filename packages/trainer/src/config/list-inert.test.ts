import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { runTrainingStep } from "../step/training-step.js";
import { openTinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { listInert } from "./list-inert.js";
import { trainConfigSchema } from "./train-config.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** Results of two training steps, and the keys reported as without effect. */
async function train(options: TinyTrainingOptions) {
  const training = await openTinyTraining(models, options);
  try {
    const take = async (step: number) =>
      (await runTrainingStep(training, { rows: training.trainRows, step, epoch: 0 })).metrics;
    const metrics = [await take(1), await take(2)];
    const names = ["actor/grad_norm", "critic/score/mean", "critic/grad_norm", "critic/vf_loss"];
    return {
      results: metrics.map((line) => names.map((name) => line[name])),
      inert: listInert(training.config).map(({ key }) => key),
    };
  } finally {
    await training.dispose();
  }
}

const required = { actor_rollout_ref: { model: { path: "m.gguf" } }, data: { train_files: "r.jsonl" } };

const actor = "actor_rollout_ref.actor";
const gae = { adv_estimator: "gae" };
/** A setting beside its default, in a training of one update a step. */
const settings: [string, TinyTrainingOptions, TinyTrainingOptions][] = [
  [`${actor}.clip_ratio`, { actor: { clip_ratio: 1e-4 } }, {}],
  [`${actor}.clip_ratio_low`, { actor: { clip_ratio_low: 1e-4, clip_ratio_high: 1e-4 } }, {}],
  [`${actor}.clip_ratio`, { actor: loss("gspo", { clip_ratio: 1e-4 }) }, { actor: loss("gspo") }],
  [`${actor}.tau_pos`, { actor: loss("sapo", { tau_pos: 30, tau_neg: 20 }) }, { actor: loss("sapo") }],
  ["critic.cliprange_value", { algorithm: gae, critic: { cliprange_value: 1e-5 } }, { algorithm: gae }],
];
function loss(loss_mode: string, more: object = {}) {
  return { policy_loss: { loss_mode }, ...more };
}

describe("settings without effect", () => {
  it.each(settings)("%s: one update a step trains the same with it, and several do not", async (key, given, plain) => {
    const [changed, usual] = [await train(given), await train(plain)];
    expect(changed.inert).toEqual([key]);
    expect(usual.inert).toEqual([]);
    expect(changed.results).toEqual(usual.results);
    const often = (options: TinyTrainingOptions): TinyTrainingOptions => ({
      ...options,
      actor: { optim: { lr: 3e-2 }, ...options.actor, ppo_epochs: 4 },
      critic: { optim: { lr: 3e-2 }, ...options.critic, ppo_epochs: 4 },
    });
    const [changedOften, usualOften] = [await train(often(given)), await train(often(plain))];
    expect(changedOften.inert).toEqual([]);
    expect(changedOften.results).not.toEqual(usualOften.results);
  });

  it("an order of rows has no effect if a sampler picks them", async () => {
    const inert = (data: object) =>
      listInert(trainConfigSchema.parse({ ...required, data: { ...required.data, ...data } }));
    const keys = (data: object) => inert(data).map(({ key }) => key);
    const sampler = { class_name: "difficulty" };
    expect(keys({ shuffle: false, sampler })).toEqual(["data.shuffle"]);
    expect(keys({ shuffle: false })).toEqual([]);
    expect(keys({ sampler })).toEqual([]);
    // It then chooses the rows too.
    expect(keys({ shuffle: false, sampler, train_max_samples: 5 })).toEqual([]);
  });

  it("a KL term has no effect if a teacher replaces the task's loss", async () => {
    const keys = (use_task_rewards: boolean) =>
      listInert(
        trainConfigSchema.parse({
          ...required,
          actor_rollout_ref: { ...required.actor_rollout_ref, actor: { use_kl_loss: true } },
          distillation: { enabled: true, distillation_loss: { use_task_rewards } },
        }),
      ).map(({ key }) => key);
    expect(keys(false)).toEqual([`${actor}.use_kl_loss`]);
    expect(keys(true)).toEqual([]);
  });

  it("several mini-batches are several updates, and with bypass_mode the ratio is one to the sampler", async () => {
    const clips = { clip_ratio: 1e-4 };
    expect((await train({ actor: { ...clips, ppo_mini_batch_size: 2 } })).inert).toEqual([]);
    const bypass = { rollout_correction: { bypass_mode: true } };
    expect((await train({ actor: clips, algorithm: bypass })).inert).toEqual([]);
  });
});
