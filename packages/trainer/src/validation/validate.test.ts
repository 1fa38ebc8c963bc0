import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openTinyTraining } from "../testing/tiny-training.js";
import { validate } from "./validate.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

describe("validation", () => {
  it("averages by data source, sampled and greedy", async () => {
    const training = await openTinyTraining(models, { data: { val_files: "rows.jsonl" } });
    const greedy = await validate(training, { temperature: 0, n: 2, step: 0 });
    expect(greedy.trajectories).toHaveLength(6);
    for (let i = 0; i < 6; i += 2)
      expect([...greedy.trajectories[i]!.tokenIds]).toEqual([...greedy.trajectories[i + 1]!.tokenIds]);
    const sampled = await validate(training, { temperature: 1, n: 2, step: 0 });
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
    const training = await openTinyTraining(models, { reward, data: { val_files: "rows.jsonl" } });
    const result = await validate(training, { temperature: 0, step: 0 });
    expect(result.success).toBe(3);
    expect(result.metrics["val-core/test/acc/mean@1"]).toBeCloseTo(1 / 3, 9);
    expect(result.metrics["val-aux/test/reward/mean@1"]).toBe(3);
  });
});
