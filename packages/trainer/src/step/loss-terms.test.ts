import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { losses } from "@cria/algorithms";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadPolicy } from "../policy/load-policy.js";
import { openTraining } from "../run/training.js";
import {
  ASCII_SHARE,
  openTinyTraining,
  type TinyTraining,
  type TinyTrainingOptions,
  writeTinyRun,
} from "../testing/tiny-training.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let files: string;
beforeAll(() => {
  files = join(models.folder, "shown.jsonl");
  const shown = ["one", "two", "three", "four", "five"].map((content) => ({
    messages: [
      { role: "user", content: "?" },
      { role: "assistant", content },
    ],
  }));
  writeFileSync(files, shown.map((line) => `${JSON.stringify(line)}\n`).join(""));
  writeFileSync(
    join(models.folder, "terms.mjs"),
    `export const near = {
      evaluate: ({ logprobs }) => ({ losses: logprobs.map((x) => -x), gradients: logprobs.map(() => -1) }),
    };
    export const shown = { ...near, tokens: "demonstrated", aggregation: "token-mean" };
    export const wrong = { losses: [] };\n`,
  );
});

const open = (options: TinyTrainingOptions = {}) => openTinyTraining(models, { prompts: ["a", "b", "c"], ...options });

async function takeStep(training: TinyTraining, step = 1) {
  return (await runTrainingStep(training, { rows: training.trainRows, step, epoch: 0 })).metrics;
}

/** Texts of the demonstrations of each update. */
function listShown({ batches, policy }: TinyTraining): string[][] {
  return batches.map((batch) =>
    batch
      .filter(({ columns }) => columns?.tokenKind && Array.from(columns.tokenKind).includes(2))
      .map(({ tokenIds, lossMask }) => policy.engine.detokenize(Array.from(tokenIds).filter((_, t) => lossMask[t]))),
  );
}

describe("demonstrations", () => {
  const shows = { actor: { demonstration_coeff: 1, optim: { lr: 2e-2 } } };

  it("are learned beside rewards, and without any advantage", async () => {
    for (const reward of [ASCII_SHARE, "return 0;"]) {
      const training = await open({ ...shows, reward, data: { demonstrations: { files, size: 3 } } });
      const found: number[] = [];
      for (let step = 1; step <= 8; step++) found.push((await takeStep(training, step))["actor/demonstration_loss"]!);
      expect(Math.min(...found.slice(-3))).toBeLessThan(0.6 * found[0]!);
      await training.dispose();
    }
  });

  it("are drawn by seed, step and update: a step has the same ones after a restart", async () => {
    const data = { demonstrations: { files, size: 2 } };
    const straight = await open({ ...shows, data });
    for (const step of [1, 2, 3]) await takeStep(straight, step);
    const all = listShown(straight);
    expect(all.map((texts) => texts.length)).toEqual([2, 2, 2]);
    expect(all.map((texts) => new Set(texts).size)).toEqual([2, 2, 2]);
    expect(new Set(all.map((texts) => texts.join())).size).toBeGreaterThan(1);
    const resumed = await open({ ...shows, data });
    await takeStep(resumed, 3);
    expect(listShown(resumed)).toEqual([all[2]]);
    await Promise.all([straight.dispose(), resumed.dispose()]);
  });

  it("are at most all there are", async () => {
    const training = await open({ ...shows, data: { demonstrations: { files, size: 50 } } });
    await takeStep(training);
    expect(
      listShown(training)[0]!
        .map((text) => text.replace(/<.*/s, ""))
        .sort(),
    ).toEqual(["five", "four", "one", "three", "two"].sort());
    await training.dispose();
  });

  it("leave the gradients of rewards as they were", async () => {
    const plain = await open();
    const both = await open({ actor: { demonstration_coeff: 1 }, data: { demonstrations: { files, size: 2 } } });
    const [without, metrics] = [await takeStep(plain), await takeStep(both)];
    for (const name of ["actor/pg_loss", "actor/ppo_kl", "actor/entropy", "critic/score/mean"])
      expect(metrics[name]).toBe(without[name]);
    expect(metrics["actor/grad_norm"]).not.toBe(without["actor/grad_norm"]);
    await Promise.all([plain.dispose(), both.dispose()]);
  });

  it("and their weight come together, before a model is loaded", async () => {
    await expect(open({ actor: { demonstration_coeff: 1 } })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "actor_rollout_ref.actor.demonstration_coeff",
    });
    await expect(open({ data: { demonstrations: { files } } })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "data.demonstrations.files",
    });
  });

  it("are checked before a model is loaded: their filter, and weights of rows", async () => {
    const data = { demonstrations: { files, keep: "reward ==" } };
    const actor = { loss_weights: { rows: { chat: { polcy: 0 } } } };
    for (const [options, subject] of [
      [{ ...shows, data }, "data.demonstrations.keep"],
      [{ actor }, "actor_rollout_ref.actor.loss_weights.rows"],
    ] as const) {
      const model = { path: join(models.folder, "missing.gguf") };
      const { config, folder } = await writeTinyRun(models, { ...options, model });
      await expect(openTraining(config, folder)).rejects.toMatchObject({ subject });
    }
  });

  it("of an own loop are conversations that policy.encodeConversation makes", async () => {
    const policy = await loadPolicy(await models.write({ seed: 5, embeddingScale: 0.25 }), {
      lora: { rank: 2 },
      threads: 1,
    });
    const conversation = policy.encodeConversation([
      { role: "user", content: "?" },
      { role: "assistant", content: "yes" },
    ]);
    const batch = {
      groups: ["a"],
      lossMasks: [Uint8Array.of(0, 1)],
      // Its trajectory has no advantage.
      sequences: new Map(),
      temperature: 1,
      responseLength: 8,
      isScored: true,
    };
    const demonstrations = { sequences: [conversation], size: 1 };
    const loss = losses.ppo({ demonstrations: 1 });
    const found: number[] = [];
    for (let i = 0; i < 5; i++) {
      const [update] = await policy.train(batch, loss, { learningRate: 1e-2, demonstrations });
      found.push(update!.metrics.demonstration_loss!);
    }
    expect(found.at(-1)).toBeLessThan(0.8 * found[0]!);
    await expect(policy.train(batch, loss, { learningRate: 1e-2 })).rejects.toMatchObject({
      code: "config/no-demonstrations",
    });
    await policy.dispose();
  });
});

describe("weights of rows", () => {
  const sources = (index: number) => ({ data_source: index === 1 ? "chat" : "test" });

  it("of 0 take a row out of a term, as if its groups were not there", async () => {
    const weighed = await open({ row: sources, actor: { loss_weights: { rows: { chat: { policy: 0 } } } } });
    const metrics = await takeStep(weighed);
    const alone = await open({ row: sources });
    const rows = alone.trainRows.filter(({ dataSource }) => dataSource !== "chat");
    const { metrics: others } = await runTrainingStep(alone, { rows, step: 1, epoch: 0 });
    expect(metrics["actor/grad_norm"]).toBeCloseTo(others["actor/grad_norm"]!, 5);
    expect(metrics["actor/pg_loss"]).toBeCloseTo(others["actor/pg_loss"]!, 6);
    await Promise.all([weighed.dispose(), alone.dispose()]);
  });

  it("may stand in the rows themselves", async () => {
    const row = (index: number) => ({ extra_info: { index, terms: { policy: index === 1 ? 0 : 1 } } });
    const own = await open({ row, actor: { loss_weights: { key: "terms" } } });
    const named = await open({ row: sources, actor: { loss_weights: { rows: { chat: { policy: 0 } } } } });
    expect((await takeStep(own))["actor/grad_norm"]).toBe((await takeStep(named))["actor/grad_norm"]);
    await Promise.all([own.dispose(), named.dispose()]);
  });

  it("of 0 for the teacher leave a row without one: it needs no hint, and is not scored", async () => {
    for (const loss_mode of ["k3", "forward_kl_topk"]) {
      const row = (index: number) => ({
        ...sources(index),
        extra_info: { index, ...(index === 1 ? {} : { hint: "say a" }) },
      });
      const distillation = {
        enabled: true,
        teacher_models: { own: { weights: "live", hint_key: "hint" } },
        distillation_loss: { loss_mode, topk: 3 },
      };
      const training = await open({ row, distillation, actor: { loss_weights: { rows: { chat: { teacher: 0 } } } } });
      const { tokenDetails, trajectories, metrics } = await runTrainingStep(training, {
        rows: training.trainRows,
        step: 1,
        epoch: 0,
      });
      expect(metrics["distillation/loss"]).not.toBe(0);
      trajectories.forEach(({ rowIndex }, i) => {
        const isScored = Array.from(tokenDetails[i]!.teacherLogprobs!).some((logprob) => logprob !== 0);
        expect(isScored).toBe(rowIndex !== 1);
      });
      await training.dispose();
      await expect(open({ row, distillation })).rejects.toMatchObject({ code: "data/no-hint" });
    }
  });

  it("are of terms that the loss has", async () => {
    await expect(open({ actor: { loss_weights: { rows: { chat: { polcy: 0 } } } } })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "actor_rollout_ref.actor.loss_weights.rows",
      received: "polcy, for the rows of chat",
    });
    const row = (index: number) => ({ extra_info: { index, terms: { policy: "much" } } });
    await expect(open({ row, actor: { loss_weights: { key: "terms" } } })).rejects.toMatchObject({
      code: "data/bad-row",
    });
  });
});

describe("terms of one's own", () => {
  const named = (name: string, more: object = {}) => ({
    loss_terms: { mine: { term: `${join(models.folder, "terms.mjs")}#${name}`, ...more } },
  });

  it("are loaded by path, measured, and trained on", async () => {
    const training = await open({ reward: "return 0;", actor: { ...named("near"), optim: { lr: 2e-2 } } });
    const found: number[] = [];
    for (let step = 1; step <= 4; step++) found.push((await takeStep(training, step))["actor/loss_terms/mine"]!);
    expect(found.at(-1)).toBeLessThan(found[0]!);
    await training.dispose();
  });

  it("may see demonstrations in place of the built-in term", async () => {
    const training = await open({ actor: named("shown"), data: { demonstrations: { files, size: 2 } } });
    const metrics = await takeStep(training);
    expect(metrics["actor/loss_terms/mine"]).toBeGreaterThan(0);
    expect(metrics).not.toHaveProperty("actor/demonstration_loss");
    await training.dispose();
  });

  it("are refused if they cannot be evaluated", async () => {
    await expect(open({ actor: named("wrong") })).rejects.toMatchObject({ code: "config/bad-value" });
  });
});
