import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { convertFolder, convertRecord } from "./convert.js";
import { runOneStep } from "./run-one-step.js";

const root = join(import.meta.dirname, "..");
const work = mkdtempSync(join(tmpdir(), "cria-gsm8k-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe("GSM8K", () => {
  it("converts real records", async () => {
    expect(await convertFolder(join(root, "sample"), work)).toEqual({ train: 8, test: 4 });
    const first = JSON.parse(readFileSync(join(work, "train.jsonl"), "utf8").split("\n")[0]!);
    expect(first.reward_model.ground_truth).toBe("72");
    expect(first.extra_info.tools_kwargs.calc_gsm8k_reward.create_kwargs.ground_truth).toBe("72");
    expect(() => convertRecord({ question: "?", answer: "none" }, 0, "file, line 3")).toThrow(/file, line 3/);
  });

  it("rolls out and trains one step on a real model", async () => {
    const metrics = await runOneStep({
      data: join(root, "sample"),
      model: join(root, "..", "..", "models", "cria-tiny.gguf"),
      work,
      // A policy that never saw such problems answers none: the KL and entropy terms still give it a gradient.
      overrides: [
        "data.train_batch_size=2",
        "trainer.threads=1",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.actor.use_kl_loss=true",
        "actor_rollout_ref.actor.entropy_coeff=0.001",
      ],
    });
    expect(metrics["engine/decode_tokens"]).toBeGreaterThan(16);
    expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
    expect(metrics["training/rollout_probs_diff_max"]).toBeLessThan(1e-4);
    expect(metrics["prompt_length/max"]).toBeGreaterThan(50);
  });
});
