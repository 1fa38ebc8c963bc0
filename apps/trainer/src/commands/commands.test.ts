import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { writeTinyRun } from "../testing/tiny-session.js";
import { demoCommand } from "./demo.js";
import { sftCommand } from "./sft.js";
import { trainCommand } from "./train.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const output = captureOutput();

const commands = { demo: demoCommand, sft: sftCommand, train: trainCommand };

/** Runs a command in this process; returns the exit code that it chose. */
async function run(name: keyof typeof commands, ...rawArgs: string[]): Promise<number> {
  await runCitty(commands[name] as typeof trainCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

describe("cria train", () => {
  it("--json prints the last step's metrics alone; validation joins them", async () => {
    const { folder } = await writeTinyRun(models, { data: { val_files: "rows.jsonl" } });
    const config = join(folder, "config.yaml");
    expect(await run("train", config, "--json", "trainer.total_training_steps=2", "trainer.experiment_name=x")).toBe(0);
    expect(output.stderr).toBe("");
    const metrics = JSON.parse(output.stdout) as Record<string, number>;
    expect(metrics["training/global_step"]).toBe(2);
    expect(metrics["val-core/test/reward/mean@1"]).toBeGreaterThanOrEqual(0);
    const lines = readFileSync(join(folder, "cria", "x", "metrics.jsonl"), "utf8")
      .trim()
      .split("\n");
    expect(lines.map((line) => JSON.parse(line)["training/global_step"])).toEqual([0, 1, 2]);
    expect(existsSync(join(folder, "cria", "x", "validation", "2.jsonl"))).toBe(true);
  });

  it("warns of full training at the learning rate of an adapter before it loads anything", async () => {
    const { folder } = await writeTinyRun(models);
    const overrides = ["actor_rollout_ref.model.lora_rank=0", "actor_rollout_ref.model.path=none.gguf"];
    expect(await run("train", join(folder, "config.yaml"), ...overrides)).toBe(1);
    expect(output.stderr).toMatch(/^warning: actor_rollout_ref\.actor\.optim\.lr: trains all weights[\s\S]*none\.gguf/);
  });

  it("Ctrl-C ends it with code 130, and no error", async () => {
    const { folder } = await writeTinyRun(models, {
      trainer: { total_training_steps: 100_000, val_before_train: false },
    });
    setTimeout(() => process.emit("SIGINT"), 300);
    expect(await run("train", join(folder, "config.yaml"))).toBe(130);
    expect(output.stderr).toMatch(/training stopped after step \d+ of 100000\n {2}saved: /);
    expect(output.stderr).not.toMatch(/error/);
  });
});

describe("errors", () => {
  it("have no stack, unless asked for", async () => {
    expect(await run("train", "none.yaml")).toBe(1);
    expect(output.stderr).toMatch(/none\.yaml: cannot be read/);
    expect(output.stderr).not.toMatch(/\n\s+at /);
    expect(await run("train", "none.yaml", "--verbose")).toBe(1);
    expect(output.stderr).toMatch(/\n\s+at /);
  });

  it("an unknown option names the nearest known one", async () => {
    expect(await run("demo", "--step", "3")).toBe(1);
    expect(output.stderr).toMatch(/--step: is not an option[\s\S]*perhaps --steps/);
    expect(await run("sft", "x.yaml", "--lr=3")).toBe(1);
    expect(output.stderr).toMatch(/--lr: is not an option[\s\S]*without dashes/);
  });

  it("a run that fails later leaves no half-written file", async () => {
    const { folder } = await writeTinyRun(models, { reward: 'throw new Error("no judge today");' });
    expect(await run("train", join(folder, "config.yaml"), "trainer.experiment_name=y")).toBe(1);
    expect(output.stderr).toMatch(/no judge today/);
    expect(existsSync(join(folder, "cria", "y", "adapter.gguf"))).toBe(false);
  });
});
