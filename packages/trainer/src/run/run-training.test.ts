import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { RunFolder, writeAtomically } from "../checkpoints/run-folder.js";
import { countSteps } from "../step/learning-rate.js";
import type { StepMetrics } from "../step-metrics.js";
import { openTinySession } from "../testing/tiny-session.js";
import { validate } from "../validation/validate.js";
import { runTraining } from "./run-training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const readLines = (file: string) =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("a run", () => {
  it("writes metrics and trajectories of each step, and the adapter", async () => {
    const session = await openTinySession(models, {
      trainer: { total_training_steps: 3, save_freq: 2 },
      data: { train_batch_size: 2 },
    });
    const run = await RunFolder.create(join(session.folder, "out"));
    const validated: number[] = [];
    const history = await runTraining(session, run, {
      validate: async (step): Promise<StepMetrics> => {
        validated.push(step);
        return step === 3 ? { "val-core/test/reward/mean@1": 0.5 } : {};
      },
    });
    expect(history).toHaveLength(3);
    expect(validated).toEqual([1, 2, 3]);
    const metrics = readLines(run.file("metrics.jsonl"));
    expect(metrics).toEqual(JSON.parse(JSON.stringify(history)));
    expect(metrics.map((m) => m["training/global_step"])).toEqual([1, 2, 3]);
    expect(metrics.map((m) => "timing_s/save_checkpoint" in m)).toEqual([false, true, true]);
    expect(metrics[2]!["val-core/test/reward/mean@1"]).toBe(0.5);
    const trajectories = readLines(run.file("rollouts", "3.jsonl"));
    expect(trajectories).toHaveLength(8);
    for (const t of trajectories) {
      const lengths = ["token_ids", "response_mask", "rollout_logprobs"].map((name) => (t[name] as unknown[]).length);
      expect(new Set(lengths).size).toBe(1);
    }
    // The adapter is the trained one: a fresh engine with it samples as this one does.
    const { path } = session.config.actor_rollout_ref.model;
    const options = { path, contextSize: 56, maxSequences: 16 };
    const again = await models.load({}, { ...options, lora: { path: run.file("adapter.gguf") } });
    const plain = await models.load({}, { ...options, lora: { rank: 4, alpha: 8 } });
    const tokenIds = trajectories[0]!.token_ids as number[];
    const score = async (engine: typeof session.policy.engine) => [
      ...(await engine.score([{ tokenIds }]))[0]!.logprobs,
    ];
    expect(await score(again)).toEqual(await score(session.policy.engine));
    expect(await score(plain)).not.toEqual(await score(session.policy.engine));
  });

  it("has as many steps as its epochs, unless the config says how many", async () => {
    const session = await openTinySession(models, { data: { train_batch_size: 1 }, trainer: { total_epochs: 2 } });
    expect(countSteps(session.config, session.trainRows.length)).toBe(6);
    session.config.trainer.total_training_steps = 4;
    expect(countSteps(session.config, session.trainRows.length)).toBe(4);
  });
});

describe("validation", () => {
  it("averages by data source, sampled and greedy", async () => {
    const session = await openTinySession(models, { data: { val_files: "rows.jsonl" } });
    const greedy = await validate(session, { temperature: 0, n: 2, step: 0 });
    expect(greedy.trajectories).toHaveLength(6);
    for (let i = 0; i < 6; i += 2)
      expect([...greedy.trajectories[i]!.tokenIds]).toEqual([...greedy.trajectories[i + 1]!.tokenIds]);
    const sampled = await validate(session, { temperature: 1, n: 2, step: 0 });
    expect(sampled.trajectories.map((t) => [...t.tokenIds])).not.toEqual(
      greedy.trajectories.map((t) => [...t.tokenIds]),
    );
    const mean = sampled.trajectories.reduce((sum, t) => sum + t.reward, 0) / 6;
    expect(sampled.success).toBeCloseTo(mean, 9);
    expect(sampled.metrics["val-core/test/reward/mean@2"]).toBeCloseTo(mean, 9);
    expect(sampled.metrics["val-core/test/reward/best@2/mean"]).toBeGreaterThan(mean);
  });

  it("reports accuracy where the reward function does", async () => {
    const reward = "return { score: 3, acc: truth === 'a' };";
    const session = await openTinySession(models, { reward, data: { val_files: "rows.jsonl" } });
    const result = await validate(session, { temperature: 0, step: 0 });
    expect(result.success).toBe(3);
    expect(result.metrics["val-core/test/acc/mean@1"]).toBeCloseTo(1 / 3, 9);
    expect(result.metrics["val-aux/test/reward/mean@1"]).toBe(3);
  });
});

describe("the run folder", () => {
  it("replaces a file whole or not at all, and leaves no temporary one", async () => {
    const folder = join(models.folder, "atomic");
    mkdirSync(join(folder, "taken"), { recursive: true });
    await writeAtomically(join(folder, "a.json"), "1");
    await writeAtomically(join(folder, "a.json"), "2");
    expect(readFileSync(join(folder, "a.json"), "utf8")).toBe("2");
    await expect(writeAtomically(join(folder, "taken"), "3")).rejects.toThrow(/taken: cannot be written/);
    expect(readdirSync(folder).sort()).toEqual(["a.json", "taken"]);
  });

  it("that cannot be made is an error with a remedy", async () => {
    writeFileSync(join(models.folder, "a-file"), "");
    await expect(RunFolder.create(join(models.folder, "a-file", "run"))).rejects.toThrow(/default_local_dir/);
  });
});
