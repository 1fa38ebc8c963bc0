import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { captureOutput } from "./testing/capture-output.js";
import { runHere } from "./testing/run-here.js";

const output = captureOutput();
const root = join(import.meta.dirname, "..", "..", "..");
const config = join(root, "examples", "calculator", "config.yaml");
const work = mkdtempSync(join(tmpdir(), "cria-cli-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

// The built command line as users run it: `npm test` builds first.
function cria(...args: string[]) {
  return spawnSync(process.execPath, [join(root, "apps", "trainer", "bin", "cria.mjs"), ...args], {
    cwd: work,
    encoding: "utf8",
    timeout: 240_000,
  });
}

describe("cria", () => {
  it("--help lists the commands", () => {
    const { stdout, status } = cria("--help");
    expect(status).toBe(0);
    for (const name of ["train", "sft", "demo", "eval", "export", "doctor"]) expect(stdout).toContain(name);
  });

  it("commands and options that do not exist: the nearest one, and exit code 2", () => {
    for (const [args, message] of [
      [["trian", config], /^\nerror cria trian: .*\n {2}expected: perhaps "cria train"/],
      [["init", "--modle", "m.gguf"], /perhaps --model/],
      [["config", "trainer.save_frq"], /perhaps "trainer\.save_freq"/],
    ] as const) {
      const { stderr, stdout, status } = cria(...args);
      expect(stderr).toMatch(message);
      expect(stdout).toBe("");
      expect(status).toBe(2);
    }
  });

  it("train --help explains the most used keys, cria config explains each", () => {
    const { stdout: help } = cria("train", "--help");
    for (const text of ["actor_rollout_ref.model.path", "trainer.total_training_steps", "cria config"])
      expect(help).toContain(text);
    const { stdout, status } = cria("config", "trainer.save_freq", "--json");
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([{ key: "trainer.save_freq", type: "a whole number", default: -1 }]);
  });

  it("errors name the place and the remedy; exit code 1, no stack", async () => {
    for (const [args, message] of [
      [["train", "none.yaml"], /none\.yaml: /],
      [["train", config, "trainer.totl_epochs=1"], /perhaps "trainer\.total_epochs"/],
      [["train", config, "actor_rollout_ref.model.path=none.gguf"], /model\.path: [\s\S]*none\.gguf/],
      [["train", config, `actor_rollout_ref.model.path=${config}`], /\bGGUF\b/],
      [
        ["train", config, "actor_rollout_ref.rollout.max_model_len=60", "actor_rollout_ref.rollout.response_length=8"],
        /max_model_len: /,
      ],
      [["demo", "--steps", "many"], /--steps/],
    ] as const) {
      output.stderr = "";
      process.exitCode = undefined;
      await runHere(work, args);
      expect(output.stderr).toMatch(message);
      expect(output.stderr).not.toMatch(/\n\s+at /);
      expect(process.exitCode).toBe(1);
    }
  });

  it("train runs the main job: metrics, trajectories, adapter; the same seed gives the same run", async () => {
    const words = (name: string) => [
      "train",
      config,
      "--json",
      "trainer.threads=1",
      "trainer.total_training_steps=2",
      "trainer.val_before_train=false",
      "data.val_max_samples=8",
      "data.train_batch_size=4",
      "actor_rollout_ref.actor.ppo_mini_batch_size=2",
      `trainer.experiment_name=${name}`,
    ];
    const built = cria(...words("run-1"));
    expect(built.status, built.stderr).toBe(0);
    await runHere(work, words("run-2"));
    const runs = [built, output].map(({ stdout, stderr }) => {
      expect(stderr).toBe("");
      return (JSON.parse(stdout) as { metrics: Record<string, number> }).metrics;
    });
    const folder = join(work, "runs", "calculator", "run-1");
    for (const file of [
      "config.json",
      "metrics.jsonl",
      "rollouts/1.jsonl",
      "rollouts/2.jsonl",
      "validation/2.jsonl",
      "adapter.gguf",
    ]) {
      expect(existsSync(join(folder, file)), file).toBe(true);
    }
    expect(readFileSync(join(folder, "metrics.jsonl"), "utf8").trim().split("\n")).toHaveLength(2);
    for (const name of [
      "critic/rewards/mean",
      "response_length/mean",
      "engine/decode_tokens",
      "training/global_step",
      "actor/entropy",
    ]) {
      expect(runs[0]![name], name).toBe(runs[1]![name]);
    }
    expect(runs[0]!["training/rollout_probs_diff_max"]).toBeLessThan(1e-4);
  });
});
