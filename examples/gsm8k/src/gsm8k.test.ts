import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runOneStep } from "./run-one-step.js";

const root = join(import.meta.dirname, "..");
const work = mkdtempSync(join(tmpdir(), "cria-gsm8k-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe.each(["tool", "interaction"] as const)("GSM8K, shape %s", (shape) => {
  it("rolls out and trains one step on a real model, from Parquet, no prompt cut", async () => {
    const metrics = await runOneStep({
      data: join(root, "sample"),
      shape,
      model: join(root, "..", "..", "models", "cria-tiny.gguf"),
      work,
      // A policy that never saw such problems answers none: the KL and entropy terms still give it a gradient.
      overrides: [
        "data.train_batch_size=2",
        "data.max_response_length=128",
        "trainer.threads=1",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.actor.use_kl_loss=true",
        "actor_rollout_ref.actor.entropy_coeff=0.001",
      ],
    });
    for (const name of [`${shape}/train.parquet`, `${shape}/test.parquet`, "cache"])
      expect(existsSync(join(work, name)), name).toBe(true);
    // Each of the four conversations says something.
    expect(metrics["engine/decode_tokens"]).toBeGreaterThanOrEqual(4);
    expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
    expect(metrics["training/rollout_probs_diff_max"]).toBeLessThan(1e-4);
    expect(metrics["prompt_length/max"]).toBeGreaterThan(100);
    expect(metrics["prompt_length/clip_ratio"]).toBe(0);
  });
});
