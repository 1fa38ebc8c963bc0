import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { losses } from "@cria/algorithms";
import type { ConfigError, Trajectory } from "@cria/core";
import { loadModel } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { loadPolicy } from "../policy/load-policy.js";
import { loadTeacher } from "../policy/teacher.js";
import { train } from "../run/train.js";
import { defineTask } from "../task/task.js";
import { dropTimes } from "../testing/drop-times.js";
import { readWeights } from "../testing/read-weights.js";
import { openTinyTraining, type TinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** Writes a deeper and wider model with the policy's vocabulary. */
const writeTeacher = () => models.write({ seed: 11, layers: 3, embedding: 32, feedForward: 48, embeddingScale: 0.3 });

/** All rewards are 0: only the teacher moves the policy. */
const unrewarded = { reward: "return 0;" };

/** Agents' programs: one asks twice in a conversation, the other goes on in two ways after its first answer. */
const answering = `
  const asked = [...row.prompt];
  const { message } = await session.complete({ messages: asked, maxTokens: 4 });
  await session.complete({ messages: [...asked, message, { role: "user", content: "x" }], maxTokens: 4 });`;
const branching = `
  const asked = [...row.prompt];
  const { message } = await session.complete({ messages: asked, maxTokens: 4 });
  for (const content of ["x", "y"])
    await session.complete({ messages: [...asked, message, { role: "user", content }], maxTokens: 4 });`;

/** Writes an agent. @returns the config's section that names it. */
function useAgent(name: string, body: string) {
  writeFileSync(join(models.folder, `${name}.mjs`), `export async function agent({ row, session }) {${body}\n}\n`);
  const file = join(models.folder, `${name}.yaml`);
  writeFileSync(file, `- name: ${name}\n  agent: ./${name}.mjs#agent\n`);
  return { default_agent_loop: name, agent_loop_config_path: file };
}

/** The stretches of a mask with value 1, as `[start, end)`. */
function listRuns(mask: ArrayLike<number>): [start: number, end: number][] {
  const runs: [number, number][] = [];
  for (let t = 0; t < mask.length; t++) {
    if (!mask[t]) continue;
    if (t > 0 && mask[t - 1]) runs.at(-1)![1] = t + 1;
    else runs.push([t, t + 1]);
  }
  return runs;
}

async function takeSteps(training: TinyTraining, count: number) {
  const metrics: Record<string, number>[] = [];
  for (let step = 1; step <= count; step++)
    metrics.push((await runTrainingStep(training, { rows: training.trainRows, step, epoch: 0 })).metrics);
  return metrics;
}

/** Returns metrics and adapter after some steps. */
async function run(options: TinyTrainingOptions, count = 2) {
  const training = await openTinyTraining(models, options);
  const metrics = await takeSteps(training, count);
  const weights = await readWeights(training);
  const { batches } = training;
  await training.dispose();
  return { metrics: metrics.map(dropTimes), weights, batches };
}

/** Settings with which estimates and likeliest tokens are both tried. */
const commonCases: Record<string, () => TinyTrainingOptions> = {
  "an adapter": () => ({}),
  "all weights": () => ({ model: { lora_rank: 0 } }),
  "a temperature of 0.7": () => ({ rollout: { temperature: 0.7 } }),
  "two epochs of two mini-batches": () => ({ actor: { ppo_epochs: 2, ppo_mini_batch_size: 2 } }),
  "small micro-batches": () => ({ actor: { ppo_max_token_len: 64 } }),
  "conversations that are taken twice": () => ({ algorithm: { use_pf_ppo: true } }),
};

describe("a teacher", () => {
  it.each([
    ["by its estimate", {}],
    ["by an advantage of each token", { loss_mode: "k1", use_policy_gradient: true }],
    ["by its likeliest tokens", { loss_mode: "forward_kl_topk", topk: 16 }],
  ])("draws the policy towards it, %s, where nothing is rewarded", async (_, loss) => {
    const training = await openTinyTraining(models, {
      ...unrewarded,
      actor: { optim: { lr: 3e-2 } },
      distillation: {
        enabled: true,
        teacher_models: { large: { model_path: await writeTeacher() } },
        distillation_loss: { use_task_rewards: false, ...loss },
      },
    });
    const metrics = await takeSteps(training, 25);
    await training.dispose();
    const divergence = (from: number, to: number) =>
      metrics.slice(from, to).reduce((sum, step) => sum + step["distillation/divergence"]!, 0) / (to - from);
    expect(divergence(0, 3)).toBeGreaterThan(0.2);
    expect(divergence(22, 25)).toBeLessThan(0.8 * divergence(0, 3));
    expect(metrics[0]!["timing_s/teacher"]).toBeGreaterThan(0);
  });

  it("is asked for the very tokens that the policy said, and for no others", async () => {
    const path = await writeTeacher();
    const distillation = { enabled: true, teacher_models: { large: { model_path: path } } };
    const training = await openTinyTraining(models, { ...unrewarded, distillation });
    const { trajectories, tokenDetails } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
    });
    const teacher = await loadTeacher(path, training.policy, { threads: 1 });
    const expected = await teacher.score(
      trajectories.map(({ tokenIds, promptLength }) => ({ tokenIds, from: promptLength })),
      { temperature: 1 },
    );
    await teacher.dispose();
    const batch = training.batches[0]!;
    const asked = trajectories.map(({ tokenIds }) => batch.find((each) => each.tokenIds === tokenIds)!.columns!);
    expect(asked.map(({ teacherLogprobs }) => Array.from(teacherLogprobs!))).toEqual(
      expected.map(({ logprobs }) => [...logprobs]),
    );
    expect(tokenDetails.map(({ teacherLogprobs }) => teacherLogprobs)).toEqual(
      expected.map(({ logprobs }) => logprobs),
    );
    await training.dispose();
  });

  const cases: Record<string, () => TinyTrainingOptions> = {
    ...commonCases,
    "a sequence-level aggregation": () => ({ actor: { loss_agg_mode: "seq-mean-token-mean" } }),
    "the sampler's own word": () => ({ algorithm: { rollout_correction: { bypass_mode: true } } }),
    "an agent's branches": () => ({ rollout: { agent: useAgent("branches", branching) } }),
  };
  it.each(Object.entries(cases))(
    "that is the policy's own model before training is the KL term, bit for bit: %s",
    async (_, make) => {
      const { actor, ...options } = make();
      const kl = { use_kl_loss: true, kl_loss_coef: 0.3, kl_loss_type: "low_var_kl" };
      const distillation = {
        enabled: true,
        distillation_loss: { distillation_loss_coef: 0.3, loss_mode: "low_var_kl" },
      };
      const optim = { lr: 1e-2 };
      const own = await run({ ...options, actor: { optim, ...actor, ...kl } });
      const other = await run({ ...options, actor: { optim, ...actor }, distillation });
      expect(other.weights).toEqual(own.weights);
      expect(other.metrics.map((m) => m["distillation/loss"])).toEqual(own.metrics.map((m) => m["actor/kl_loss"]));
      expect(other.metrics[1]!["distillation/loss"]).toBeGreaterThan(0);
    },
  );

  it("with an adapter: has the logprobs of the training that wrote it", async () => {
    const trained = await openTinyTraining(models);
    await takeSteps(trained, 3);
    const adapter = join(models.folder, "trained.gguf");
    await trained.policy.save(adapter);
    const teacher_models = { earlier: { lora_adapter_path: adapter } };
    const training = await openTinyTraining(models, { ...unrewarded, distillation: { enabled: true, teacher_models } });
    const { trajectories, tokenDetails } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
    });
    const sequences = trajectories.map(({ tokenIds, promptLength }) => ({ tokenIds, from: promptLength }));
    const said = await trained.policy.score(sequences, { temperature: 1 });
    expect(tokenDetails.map(({ teacherLogprobs }) => teacherLogprobs)).toEqual(
      said.map(({ oldLogprobs }) => oldLogprobs),
    );
    const [, second] = await takeSteps(training, 2);
    expect(second!["distillation/divergence"]).toBeGreaterThan(0);
    await training.dispose();
    await trained.dispose();
  });

  it("teaches where no group has an advantage, too", async () => {
    const { batches } = await run({ ...unrewarded, distillation: { enabled: true } }, 1);
    expect(batches[0]).toHaveLength(12);
    expect((await run(unrewarded, 1)).batches).toHaveLength(0);
  });

  it("is chosen by the row's data_source or by a field of it", async () => {
    const teachers = {
      large: { key: "large", model_path: await writeTeacher() },
      own: { key: null },
    };
    const ask = async (teacher_key: string, row: object) => {
      const distillation = { enabled: true, teacher_key, teacher_models: teachers };
      return run({ ...unrewarded, row: { ...row }, distillation }, 1);
    };
    const columns = ({ batches }: Awaited<ReturnType<typeof run>>) =>
      batches[0]!.map(({ columns }) => Array.from(columns!.teacherLogprobs!));
    const large = columns(await ask("data_source", { data_source: "large" }));
    const own = columns(await ask("data_source", { data_source: "test" }));
    expect(large).not.toEqual(own);
    expect(columns(await ask("level", { extra_info: { index: 0, level: "large" } }))).not.toEqual(own);
    const distillation = { enabled: true, teacher_models: { large: teachers.large } };
    await expect(openTinyTraining(models, { distillation })).rejects.toMatchObject({ code: "config/no-teacher" });
  });

  it("reads a hint that the policy does not read", async () => {
    const distillation = {
      enabled: true,
      teacher_models: { hinted: { weights: "live", hint_key: "ground_truth" } },
      distillation_loss: { use_task_rewards: false, loss_mode: "forward_kl_topk", topk: 4 },
    };
    const rollout = { prompt_length: 100, response_length: 8 };
    const training = await openTinyTraining(models, { ...unrewarded, rollout, distillation });
    const { policy, trainRows } = training;
    const { trajectories } = await runTrainingStep(training, { rows: trainRows, step: 1, epoch: 0 });
    // Scores from before the update equal those of a policy without updates.
    const fresh = await openTinyTraining(models, { ...unrewarded, rollout });
    for (const [i, { tokenIds, promptLength, rowIndex }] of trajectories.entries()) {
      const { prompt, groundTruth } = trainRows.find(({ index }) => index === rowIndex)!;
      const hinted = policy.tokenizer.encodePrompt([{ role: "system", content: String(groundTruth) }, ...prompt]);
      const said = [...tokenIds.subarray(promptLength)];
      const sequence = { tokenIds: [...hinted, ...said], from: hinted.length };
      const [scores] = await fresh.policy.engine.score([sequence], { temperature: 1, likeliest: { count: 4 } });
      const taught = training.batches[0]!.find((sequence) => sequence.tokenIds === tokenIds)!;
      expect(Array.from(taught.columns!.teacherLogprobs!).slice(promptLength), `conversation ${i}`).toEqual(
        Array.from(scores!.logprobs.subarray(hinted.length)).map((value) => expect.closeTo(value, 5)),
      );
      const found = taught.candidates!;
      expect([...found.ids.subarray(4 * promptLength)]).toEqual([
        ...scores!.likeliest!.ids.subarray(4 * hinted.length),
      ]);
      expect(Array.from(found.columns.teacherLogprobs!).slice(4 * promptLength)).toEqual(
        Array.from(scores!.likeliest!.logprobs.subarray(4 * hinted.length)).map((value) => expect.closeTo(value, 5)),
      );
    }
    await fresh.dispose();
    await training.dispose();
    const missing = { ...distillation, teacher_models: { hinted: { weights: "live", hint_key: "nowhere" } } };
    await expect(openTinyTraining(models, { distillation: missing })).rejects.toMatchObject({ code: "data/no-hint" });
  });

  /** A reward that corrects two answers in three. */
  const correcting = {
    reward: `const said = [...text].length % 3; return { score: 0, fix: said ? "say " + truth + said : "" };`,
  };
  const corrected = (entry: object, loss: object = {}) => ({
    enabled: true,
    teacher_models: { hinted: { weights: "live", correction_key: "fix", ...entry } },
    distillation_loss: { use_task_rewards: false, ...loss },
  });
  const roomy = { prompt_length: 100, response_length: 8 };

  /** The scores of a policy that reads a hint in front of a conversation. */
  async function scoreHinted({ policy, trainRows }: TinyTraining, of: Trajectory, hint: string) {
    const { prompt } = trainRows.find(({ index }) => index === of.rowIndex)!;
    const hinted = policy.tokenizer.encodePrompt([{ role: "system", content: hint }, ...prompt]);
    const sequence = { tokenIds: [...hinted, ...of.tokenIds.subarray(of.promptLength)], from: hinted.length };
    const [scores] = await policy.engine.score([sequence], { temperature: 1, likeliest: { count: 4 } });
    const logprobs = Array.from(scores!.logprobs.subarray(hinted.length));
    return { logprobs, ids: [...scores!.likeliest!.ids.subarray(4 * hinted.length)] };
  }

  it.each([
    ["by its estimate", {}],
    ["by its likeliest tokens", { loss_mode: "forward_kl_topk", topk: 4 }],
  ])("reads what the reward says of a conversation, and teaches no other, %s", async (_, loss) => {
    const training = await openTinyTraining(models, {
      ...correcting,
      rollout: roomy,
      distillation: corrected({}, loss),
    });
    const { trajectories, tokenDetails, metrics } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
    });
    // Without updates it has the weights from before this step's.
    const fresh = await openTinyTraining(models, { ...unrewarded, rollout: roomy });
    let [taught, tokens, divergence] = [0, 0, 0];
    const fixes = new Set<unknown>();
    for (const [i, trajectory] of trajectories.entries()) {
      const { tokenIds, promptLength, responseMask, extraFields } = trajectory;
      const { columns, candidates } = training.batches[0]!.find((each) => each.tokenIds === tokenIds)!;
      const isTaught = extraFields.fix !== "";
      expect(new Set(Array.from(columns!["weight/teacher"]!))).toEqual(new Set([isTaught ? 1 : 0]));
      const found = Array.from(columns!.teacherLogprobs!).slice(promptLength);
      if (!isTaught) {
        expect(new Set(found)).toEqual(new Set([0]));
        continue;
      }
      taught++;
      fixes.add(`${trajectory.rowIndex} ${extraFields.fix}`);
      const expected = await scoreHinted(fresh, trajectory, String(extraFields.fix));
      expect(found, `conversation ${i}`).toEqual(expected.logprobs.map((value) => expect.closeTo(value, 5)));
      if (candidates) expect([...candidates.ids.subarray(4 * promptLength)]).toEqual(expected.ids);
      for (let t = promptLength; t < tokenIds.length; t++) {
        if (!responseMask[t]) continue;
        tokens++;
        const apart = expected.logprobs[t - promptLength]! - tokenDetails[i]!.oldLogprobs![t]!;
        divergence += Math.exp(apart) - apart - 1;
      }
    }
    // Conversations of a prompt are corrected in several ways, and some not at all.
    expect(fixes.size).toBeGreaterThan(3);
    expect(taught).toBeGreaterThan(4);
    expect(taught).toBeLessThan(12);
    expect(metrics["distillation/corrected"]).toBe(taught / 12);
    // The mean is over the conversations that are taught.
    if (Object.keys(loss).length === 0) expect(metrics["distillation/divergence"]).toBeCloseTo(divergence / tokens, 5);
    await fresh.dispose();
    await training.dispose();
  });

  it("reads the row's hint where the reward says nothing", async () => {
    const training = await openTinyTraining(models, {
      ...correcting,
      rollout: roomy,
      distillation: corrected({ hint_key: "ground_truth" }),
    });
    const { trajectories, metrics } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
    });
    const fresh = await openTinyTraining(models, { ...unrewarded, rollout: roomy });
    const sources = new Set<boolean>();
    for (const trajectory of trajectories) {
      const { tokenIds, promptLength, rowIndex, extraFields } = trajectory;
      const { groundTruth } = training.trainRows.find(({ index }) => index === rowIndex)!;
      const { columns } = training.batches[0]!.find((each) => each.tokenIds === tokenIds)!;
      sources.add(extraFields.fix !== "");
      const expected = await scoreHinted(fresh, trajectory, String(extraFields.fix || groundTruth));
      expect(Array.from(columns!.teacherLogprobs!).slice(promptLength)).toEqual(
        expected.logprobs.map((value) => expect.closeTo(value, 5)),
      );
    }
    expect(sources).toEqual(new Set([true, false]));
    expect(metrics["distillation/corrected"]).toBeLessThan(1);
    await fresh.dispose();
    await training.dispose();
  });

  it.each<[string, TinyTrainingOptions]>([
    ["an agent", { rollout: { agent: useAgent("corrected", answering) } }],
    ["replayed groups", { algorithm: { replay: { share: 1 } } }],
  ])("that reads corrections is refused with %s, by its key", async (_, options) => {
    const opened = openTinyTraining(models, { ...options, distillation: corrected({}) });
    await expect(opened).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "distillation.teacher_models.hinted.correction_key",
    });
  });

  it("that reads corrections moves nothing in a step without one", async () => {
    const reward = "return { score: 0, fix: 7 };";
    const training = await openTinyTraining(models, { reward, rollout: roomy, distillation: corrected({}) });
    const [metrics] = await takeSteps(training, 1);
    expect(metrics!["distillation/corrected"]).toBe(0);
    expect(metrics!["distillation/loss"]).toBe(0);
    expect(metrics!["actor/grad_norm"]).toBe(0);
    await training.dispose();
  });

  it("weighs turns by how far they lie from it", async () => {
    const loss = { turn_weights: "relative", turn_weight_delta: 0.1 };
    const { batches } = await run({ ...unrewarded, distillation: { enabled: true, distillation_loss: loss } }, 2);
    // Conversations have one turn, and the first turn's weight is 1.
    for (const { columns, lossMask } of batches[1]!)
      expect(Array.from(columns!.teacherWeights!)).toEqual(Array.from(lossMask, (bit) => (bit ? 1 : 0)));
  });

  it("weighs the turns after the first by their own distance", async () => {
    const distillation = {
      enabled: true,
      teacher_models: { large: { model_path: await writeTeacher() } },
      distillation_loss: { turn_weights: "relative", turn_weight_delta: 0.1 },
    };
    const { batches } = await run({ ...unrewarded, rollout: { agent: useAgent("turns", answering) }, distillation }, 1);
    const seconds: number[] = [];
    for (const { columns, lossMask } of batches[0]!) {
      const [weights, old, taught] = ["teacherWeights", "oldLogprobs", "teacherLogprobs"].map((name) =>
        Array.from(columns![name]!),
      );
      const turns = listRuns(lossMask);
      expect(turns).toHaveLength(2);
      const [first, second] = turns.map(([start, end]) => {
        let sum = 0;
        for (let t = start; t < end; t++) sum += Math.abs(old![t]! - taught![t]!);
        return sum / (end - start);
      });
      const expected = Math.min(first! / second!, 1.1);
      turns.forEach(([start, end], k) => {
        for (let t = start; t < end; t++) expect(weights![t]).toBeCloseTo(k === 0 ? 1 : expected, 5);
      });
      seconds.push(expected);
    }
    expect(Math.min(...seconds)).toBeLessThan(1);
    expect(Math.max(...seconds)).toBeGreaterThan(1);
  });

  it.each([["another vocabulary", { vocabulary: 300, controlTokens: ["<|other|>"] }, "config/other-vocabulary"]])(
    "with %s is refused",
    async (_, options, code) => {
      const model_path = await models.write({ seed: 3, merges: ["Ġ t"], ...options });
      const distillation = { enabled: true, teacher_models: { other: { model_path } } };
      await expect(openTinyTraining(models, { distillation })).rejects.toMatchObject({ code });
    },
  );

  it("with fewer tokens than the policy is refused, and one with more is not", async () => {
    const [small, large] = [await models.write({ seed: 3 }), await models.write({ seed: 3, vocabulary: 320 })];
    const open = (path: string, model_path: string) =>
      openTinyTraining(models, {
        model: { path },
        distillation: { enabled: true, teacher_models: { t: { model_path } } },
      });
    const refused = await open(large, small).catch((error: ConfigError) => error as never);
    expect(refused).toMatchObject({
      code: "config/other-vocabulary",
      expected: expect.stringContaining("320 tokens"),
      received: "288 tokens",
    });
    await (await open(small, large)).dispose();
  });

  it("without the task's rewards needs no reference for the task's KL term", async () => {
    const teacher_models = { large: { model_path: await writeTeacher() } };
    const take = async (actor: object, use_task_rewards: boolean) => {
      const distillation = { enabled: true, teacher_models, distillation_loss: { use_task_rewards } };
      const training = await openTinyTraining(models, { actor: { optim: { lr: 1e-2 }, ...actor }, distillation });
      const metrics = await takeSteps(training, 2);
      const weights = await readWeights(training);
      await training.dispose();
      return { metrics, weights };
    };
    const [kl, plain, both] = [
      await take({ use_kl_loss: true }, false),
      await take({}, false),
      await take({ use_kl_loss: true }, true),
    ];
    expect(kl.weights).toEqual(plain.weights);
    expect(both.metrics[0]).toHaveProperty("timing_s/ref");
    for (const name of ["timing_s/ref", "actor/kl_loss"]) expect(kl.metrics[0]).not.toHaveProperty(name);
  });

  it.each([
    ["loss_mode", { loss_mode: "k9" }],
    ["policy_loss_mode", { use_policy_gradient: true, policy_loss_mode: "vanila" }],
  ])("with an unknown %s is refused, by the key and with the known names", async (key, distillation_loss) => {
    const opened = openTinyTraining(models, { distillation: { enabled: true, distillation_loss } });
    await expect(opened).rejects.toMatchObject({
      code: "config/unknown-name",
      subject: `distillation.distillation_loss.${key}`,
      expected: expect.stringMatching(key === "loss_mode" ? /k1.*k2.*k3/ : /vanilla/),
    });
  });

  it("is refused if more likeliest tokens are wanted than there are, by the key", async () => {
    const open = (topk: number, loss_mode: string) =>
      openTinyTraining(models, { distillation: { enabled: true, distillation_loss: { loss_mode, topk } } });
    const refused = { code: "config/bad-value", subject: "distillation.distillation_loss.topk" };
    await expect(open(289, "forward_kl_topk")).rejects.toMatchObject({ ...refused, expected: "at most 288" });
    await expect(open(0, "forward_kl_topk")).rejects.toMatchObject({ code: "config/bad-value" });
    await (await open(289, "k3")).dispose();
  });

  it("that is the policy itself without a hint is refused", async () => {
    const distillation = { enabled: true, teacher_models: { itself: { weights: "live" } } };
    await expect(openTinyTraining(models, { distillation })).rejects.toMatchObject({ code: "config/bad-value" });
  });
});

describe("the teacher's likeliest tokens", () => {
  const compare = (loss: object = {}) => ({
    distillation_loss: { loss_mode: "forward_kl_topk", topk: 5, use_task_rewards: false, ...loss },
  });
  const cases: Record<string, () => TinyTrainingOptions> = {
    ...commonCases,
    "the sampler's own word": () => ({ algorithm: { rollout_correction: { bypass_mode: true } } }),
    "an agent's branches": () => ({ rollout: { agent: useAgent("branches-topk", branching) } }),
    "a teacher with more tokens": () => ({}),
  };
  it.each(Object.entries(cases))(
    "are the loss's candidates of each token that the policy said: %s",
    async (name, make) => {
      const path = name.includes("more tokens")
        ? await models.write({ seed: 3, vocabulary: 320 })
        : await writeTeacher();
      const teacher_models = { large: { model_path: path } };
      const options = make();
      const training = await openTinyTraining(models, {
        ...unrewarded,
        ...options,
        distillation: { enabled: true, teacher_models, ...compare() },
      });
      const [metrics] = await takeSteps(training, 1);
      expect(metrics!["distillation/divergence"]).toBeGreaterThan(0);
      expect(metrics!["distillation/teacher_mass"]).toBeGreaterThan(metrics!["distillation/student_mass"]!);
      expect(metrics!["distillation/teacher_mass"]).toBeLessThan(1);
      const teacher = await loadModel({ path, trainable: "lora", lora: { rank: 1 }, contextSize: 64, threads: 1 });
      const { temperature } = training.settings.sampling;
      let compared = 0;
      for (const { tokenIds, lossMask, candidates } of training.batches.flat()) {
        const from = Array.from(lossMask).indexOf(1);
        const likeliest = { count: 5, below: training.policy.engine.info.vocabSize };
        const [scored] = await teacher.score([{ tokenIds, from }], { temperature, adapter: false, likeliest });
        for (let t = 0; t < tokenIds.length; t++) {
          if (!lossMask[t]) continue;
          compared++;
          const cut = (values: ArrayLike<number>) => Array.from(values).slice(5 * t, 5 * t + 5);
          expect(cut(candidates!.ids)).toEqual(cut(scored!.likeliest!.ids));
          expect(cut(candidates!.columns.teacherLogprobs!)).toEqual(cut(scored!.likeliest!.logprobs));
        }
      }
      expect(compared).toBeGreaterThan(20);
      await teacher.dispose();
      await training.dispose();
    },
  );

  it.each([
    ["an adapter", 4],
    ["all weights", 0],
  ])("of the policy's own model diverge from it only once it is trained: %s", async (_, lora_rank) => {
    // All tokens of the vocabulary: the whole KL.
    const training = await openTinyTraining(models, {
      model: { lora_rank },
      distillation: { enabled: true, ...compare({ topk: 288, use_task_rewards: true }) },
    });
    const [first, second] = await takeSteps(training, 2);
    expect(first!["distillation/divergence"]).toBeLessThan(1e-6);
    expect(second!["distillation/divergence"]).toBeGreaterThan(1e-5);
    for (const metrics of [first!, second!])
      for (const who of ["teacher", "student"]) expect(metrics[`distillation/${who}_mass`]).toBeCloseTo(1, 5);
    await training.dispose();
  });

  it("can be an advantage of the policy's own token, as in verl", async () => {
    const teacher_models = { large: { model_path: await writeTeacher() } };
    const loss = compare({ use_policy_gradient: true });
    const { metrics, weights } = await run(
      { ...unrewarded, distillation: { enabled: true, teacher_models, ...loss } },
      1,
    );
    expect(metrics[0]!["distillation/divergence"]).toBeGreaterThan(0);
    const other = await run({ ...unrewarded, distillation: { enabled: true, teacher_models, ...compare() } }, 1);
    expect(weights).not.toEqual(other.weights);
  });

  it("are of each row's own teacher", async () => {
    const teacher_models = { large: { key: "large", model_path: await writeTeacher() }, own: { key: null } };
    const row = (index: number) => ({ data_source: index === 0 ? "large" : "test" });
    const distillation = { enabled: true, teacher_models, ...compare({ topk: 288 }) };
    const training = await openTinyTraining(models, { ...unrewarded, row, distillation });
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    const fresh = await openTinyTraining(models, unrewarded);
    const isOwn = [];
    for (const { tokenIds, promptLength, dataSource } of trajectories) {
      const { candidates } = training.batches[0]!.find((sequence) => sequence.tokenIds === tokenIds)!;
      const sequence = { tokenIds, from: promptLength };
      const [scored] = await fresh.policy.engine.score([sequence], { likeliest: { count: 288 } });
      isOwn.push([dataSource, scored!.likeliest!.ids.every((id, k) => id === candidates!.ids[k])]);
    }
    expect(isOwn).toEqual(trajectories.map(({ dataSource }) => [dataSource, dataSource === "test"]));
    expect(isOwn.map(([source]) => source)).toContain("large");
    await fresh.dispose();
    await training.dispose();
  });
});

describe("train({ teacher })", () => {
  const task = defineTask({
    rows: [{ question: "a" }, { question: "b" }],
    reward: ({ answer }) => (answer.length > 3 ? 1 : 0),
  });
  const options = async () => ({
    model: await models.write({ seed: 5, embeddingScale: 0.25 }),
    task,
    steps: 2,
    batchSize: 2,
    n: 2,
    lora: { rank: 2 },
    threads: 1,
    config: {
      actor_rollout_ref: { rollout: { response_length: 8, prompt_length: 100 } },
      data: { max_prompt_length: 100, max_response_length: 8 },
      trainer: { default_local_dir: models.folder },
    },
  });

  it("is the config's distillation", async () => {
    const metrics: Record<string, number>[] = [];
    const { folder } = await train({
      ...(await options()),
      name: "taught",
      teacher: { model: await writeTeacher(), coefficient: 0.5, taskRewards: true, maxLoss: 3 },
      report: (event) => {
        if (event.type === "step") metrics.push(event.metrics as Record<string, number>);
      },
    });
    expect(folder).toContain("taught");
    expect(metrics.map((step) => step["distillation/loss"]! > 0)).toEqual([true, true]);
  });

  it("compares its likeliest tokens", async () => {
    const metrics: Record<string, number>[] = [];
    await train({
      ...(await options()),
      name: "taught-by-likeliest",
      teacher: { model: await writeTeacher(), estimate: "forward_kl_topk", topk: 3 },
      report: (event) => {
        if (event.type === "step") metrics.push(event.metrics as Record<string, number>);
      },
    });
    for (const step of metrics) expect(step["distillation/teacher_mass"]).toBeGreaterThan(3 / 288);
    expect(metrics).toHaveLength(2);
  });

  it("learns ahead of the updates, with the bits of the same lag", async () => {
    const run = async (name: string) => {
      const { metrics } = await train({ ...(await options()), name, lag: 1, teacher: { model: await writeTeacher() } });
      return dropTimes(metrics as Record<string, number>);
    };
    const [first, second] = [await run("ahead-1"), await run("ahead-2")];
    const own = (metrics: Record<string, number>) =>
      Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith("engine/")));
    expect(own(first)).toEqual(own(second));
  });

  it("refuses a misspelt option, and a loss with a teacher's term", async () => {
    await expect(train({ ...(await options()), teacher: { modle: "x" } as never })).rejects.toMatchObject({
      code: "config/unknown-key",
    });
    await expect(
      train({ ...(await options()), loss: losses.ppo({ teacher: { coefficient: 1 } }) }),
    ).rejects.toMatchObject({ code: "config/bad-value" });
  });
});

describe("errors of train({ teacher })", () => {
  const task = defineTask({ rows: [{ question: "a", demonstration: "" }], reward: () => 0 });
  it.each([
    ["an unknown estimate", { estimate: "k9" }, "config/unknown-name", "train: teacher.estimate"],
    ["too many tokens", { estimate: "forward_kl_topk", topk: 1000 }, "config/bad-value", "train: teacher.topk"],
    ["no hint", { weights: "live" as const }, "config/bad-value", "train: teacher.hint"],
    ["a negative weight", { coefficient: -1 }, "config/bad-value", "train: teacher.coefficient"],
    [
      "another model",
      { weights: "live" as const, hint: "x", model: "y.gguf" },
      "config/bad-value",
      "train: teacher.weights",
    ],
  ])("name its option: %s", async (_, teacher, code, subject) => {
    const model = await models.write({ seed: 5, embeddingScale: 0.25 });
    await expect(train({ model, task, teacher, threads: 1 })).rejects.toMatchObject({
      code,
      subject,
      message: expect.stringMatching(new RegExp(`^${subject}: (?!.*distillation)`, "s")),
    });
  });

  it("name the option in the expected value", async () => {
    const model = await models.write({ seed: 5, embeddingScale: 0.25 });
    const config = { trainer: { default_local_dir: models.folder } };
    const given = { model, task, threads: 1, config };
    await expect(train({ ...given, teacher: { weights: "live", hint: "demonstration" } })).rejects.toMatchObject({
      code: "data/no-hint",
      expected: "a text: teacher.hint names the field",
    });
  });
});

describe("policy.train with a teacher", () => {
  it.each([
    ["an estimate", {}],
    ["its likeliest tokens", { estimate: "forward_kl_topk", topk: 20 }],
  ])("asks the teacher for the scores that the batch lacks: %s", async (_, term) => {
    const policy = await loadPolicy(await models.write({ seed: 5, embeddingScale: 0.25 }), {
      lora: { rank: 2 },
      threads: 1,
      maxSequences: 4,
    });
    const teacher = await loadTeacher(await writeTeacher(), policy, { threads: 1 });
    const tokenIds = Int32Array.of(5, 6, 7, 8, 9);
    const batch = {
      groups: ["a"],
      lossMasks: [Uint8Array.of(0, 0, 1, 1, 1)],
      sequences: new Map([
        [0, [{ tokenIds, lossMask: Uint8Array.of(0, 0, 1, 1, 1), columns: { advantages: new Float32Array(5) } }]],
      ]),
      temperature: 1,
      responseLength: 8,
      isScored: false,
    };
    const loss = losses.ppo({ teacher: { taskRewards: false, ...term } });
    const divergences: number[] = [];
    for (let step = 0; step < 8; step++) {
      const [result] = await policy.train(batch, loss, { learningRate: 3e-2, teacher });
      divergences.push(result!.metrics.teacher_divergence!);
    }
    expect(divergences[0]).toBeGreaterThan(0.01);
    expect(divergences.at(-1)).toBeLessThan(0.5 * divergences[0]!);
    await expect(policy.train(batch, loss, { learningRate: 1e-2 })).rejects.toMatchObject({
      code: "data/missing-column",
    });
    await teacher.dispose();
    await policy.dispose();
  });
});
