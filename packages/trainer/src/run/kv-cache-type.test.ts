import { readGguf } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { estimateMemory, readModelShape } from "../memory/estimate-memory.js";
import { runTrainingStep } from "../step/training-step.js";
import { writeTinyRun } from "../testing/tiny-training.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

type KvType = "f32" | "f16" | "q8_0";

/** A run whose keys are large enough for the rounding to show; Q8_0 needs heads of 32 values or more. */
const write = async (type: KvType, algorithm: Record<string, unknown> = {}) => {
  const path = await models.write({ seed: 5, embeddingScale: 0.25, embedding: 128, heads: 2, headSize: 64 });
  return writeTinyRun(models, { model: { path }, rollout: { kv_cache_dtype: type }, algorithm });
};

/** Metrics of a run's first step, with the model loaded as the config says. */
async function takeStep(type: KvType, algorithm: Record<string, unknown> = {}) {
  const { config, folder } = await write(type, algorithm);
  const training = await openTraining(config, folder, {});
  try {
    return (await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 })).metrics;
  } finally {
    await training.dispose();
  }
}

describe("rollout.kv_cache_dtype", () => {
  it("f32 gives the trainer's logprobs", async () => {
    const metrics = await takeStep("f32");
    expect(metrics["training/rollout_probs_diff_max"]).toBe(0);
    expect(metrics).not.toHaveProperty("rollout_corr/rollout_is_max");
  });

  it.each(["f16", "q8_0"] as const)("%s gives others, which are counted and corrected", async (type) => {
    const metrics = await takeStep(type);
    const difference = metrics["training/rollout_probs_diff_max"]!;
    expect(difference).toBeGreaterThan(0);
    expect(difference).toBeLessThan(0.1);
    expect(metrics["rollout_corr/rollout_is_max"]).toBeGreaterThan(1);
    expect(metrics["rollout_corr/rollout_is_min"]).toBeLessThan(1);
    const plain = await takeStep(type, { rollout_correction: { rollout_is: "none" } });
    expect(plain["training/rollout_probs_diff_max"]).toBe(difference);
    expect(plain).not.toHaveProperty("rollout_corr/rollout_is_max");
  });

  it("is counted by the estimate of memory", async () => {
    const count = async (type: KvType) => {
      const { config } = await write(type);
      const shape = readModelShape(await readGguf(config.actor_rollout_ref.model.path));
      return estimateMemory(shape, config).find(({ name }) => name === "KV cache")!;
    };
    const [whole, half, quarter] = [await count("f32"), await count("f16"), await count("q8_0")];
    expect(half.bytes).toBe(whole.bytes / 2);
    expect(quarter.bytes).toBe((whole.bytes * 34) / 128);
    expect([whole, half, quarter].map(({ detail }) => detail.split(", ").at(-1))).toEqual(["F32", "F16", "Q8_0"]);
  });
});
