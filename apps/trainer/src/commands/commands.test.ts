import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockFile } from "@cria/engine/internal";
import { TinyModels } from "@cria/engine/testing";
import type { Finding } from "@cria/trainer";
import { writeTinyRun } from "@cria/trainer/testing";
import { runCommand as runCitty } from "citty";
import { afterAll, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { demoCommand } from "./demo.js";
import { evalCommand } from "./eval.js";
import { sftCommand } from "./sft.js";
import { trainCommand } from "./train.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const output = captureOutput();

const commands = { demo: demoCommand, eval: evalCommand, sft: sftCommand, train: trainCommand };

/** Runs a command in this process; returns its exit code. */
async function run(name: keyof typeof commands, ...rawArgs: string[]): Promise<number> {
  await runCitty(commands[name] as typeof trainCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

describe("cria train", () => {
  it("--json prints where the run is, before and after, and the last step's metrics with its validation", async () => {
    const { folder } = await writeTinyRun(models, { data: { val_files: "rows.jsonl" } });
    const config = join(folder, "config.yaml");
    expect(await run("train", config, "--json", "trainer.total_training_steps=2", "trainer.experiment_name=x")).toBe(0);
    expect(output.stderr).toBe("");
    const { metrics, ...ends } = JSON.parse(output.stdout) as { metrics: Record<string, number> };
    expect(ends).toEqual({
      run_folder: join(folder, "cria", "x"),
      measured: "held_out",
      before: { step: 0, success: expect.any(Number) },
      after: { step: 2, success: expect.closeTo(metrics["val-core/test/reward/mean@1"]!, 12) },
      problems: [],
    });
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
    const overrides = ["actor_rollout_ref.model.lora_rank=0", "reward_model.reward_manager=none"];
    expect(await run("train", join(folder, "config.yaml"), ...overrides)).toBe(1);
    expect(output.stderr).toMatch(/^warning: actor_rollout_ref\.actor\.optim\.lr: [\s\S]*reward_manager/);
  });

  it("warns of lengths beyond the model's context, and of memory that will not do, before it loads anything", async () => {
    const { folder } = await writeTinyRun(models);
    const config = join(folder, "config.yaml");
    const overrides = ["actor_rollout_ref.rollout.max_model_len=100000000", "reward_model.reward_manager=none"];
    expect(await run("train", config, ...overrides)).toBe(1);
    expect(output.stderr).toMatch(
      /\nwarning: actor_rollout_ref\.rollout\.max_model_len: .*\b100000000 tokens .*; lower /,
    );
    expect(output.stderr).toMatch(
      /^warning: this config: .*[\d.]+ GB of .*lower actor_rollout_ref\.rollout\.max_num_seqs\n[\s\S]*reward_manager/,
    );
  });

  it("warns of prompts that are too long before a step draws them", async () => {
    const prompts = ["a", "b".repeat(300), "c", "d".repeat(200)];
    const { folder } = await writeTinyRun(models, { prompts });
    const config = join(folder, "config.yaml");
    expect(await run("train", config, "trainer.val_before_train=false")).toBe(1);
    expect(output.stderr).toMatch(
      /^warning: data\.max_prompt_length \(maxPromptLength of a task\): 2 of 4 prompts .* up to 3\d\d, .*rows\.jsonl, line 2; /,
    );
    expect(output.stderr).toMatch(/error row 1 /);
  });

  it("sft explains its loss, and prints the command that trains on from there", async () => {
    const { folder, config } = await writeTinyRun(models, {
      reward: "return 0;",
      trainer: { total_training_steps: 5 },
    });
    const talks = Array.from({ length: 4 }, () => ({
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: "bcdef" },
      ],
    }));
    writeFileSync(join(folder, "talks.jsonl"), talks.map((talk) => `${JSON.stringify(talk)}\n`).join(""));
    const trainer = { default_local_dir: folder, total_training_steps: 2, threads: 1, logger: ["file"] };
    const model = { path: config.actor_rollout_ref.model.path, lora_rank: 4 };
    writeFileSync(join(folder, "sft.yaml"), JSON.stringify({ model, data: { train_files: "talks.jsonl" }, trainer }));
    expect(await run("sft", join(folder, "sft.yaml")), output.stderr).toBe(0);
    expect(output.stdout.replaceAll("\n", " ")).toMatch(
      /at a loss of 0\.\d+ one in twenty conversations of \d+ +tokens/,
    );
    const words = /cria train config\.yaml (.*)/.exec(output.stdout)![1]!.split(" ");
    expect(words[0]).toBe(
      `actor_rollout_ref.model.lora_adapter_path=${join(folder, "sft", "default", "adapter.gguf")}`,
    );
    // The config has another alpha than the adapter.
    const settings = [...words, "trainer.logger=[file]"];
    expect(await run("train", join(folder, "config.yaml"), ...settings, "--json"), output.stderr).toBe(0);
    const { problems } = JSON.parse(output.stdout.trim().split("\n").at(-1)!) as { problems: Finding[] };
    // Success on its task is also measured from there.
    const rows = `data.val_files=${join(folder, "rows.jsonl")}`;
    expect(
      await run("eval", join(folder, "config.yaml"), ...settings, rows, "--out", join(folder, "eval.jsonl")),
      output.stderr,
    ).toBe(0);
    // The coach names the start.
    const remedy = expect.stringMatching(/began with ended after 2 steps at a loss of/);
    expect(problems).toContainEqual(expect.objectContaining({ rule: "no_reward", remedy }));
  });

  it.each(["train", "sft"] as const)(
    "%s finds a run that is in use, and keys that must not change, before it loads",
    async (name) => {
      const { folder, config } = await writeTinyRun(models, { trainer: { total_training_steps: 1 } });
      const model = join(folder, "model.gguf");
      copyFileSync(config.actor_rollout_ref.model.path, model);
      const section = name === "train" ? "actor_rollout_ref.model" : "model";
      const file = join(folder, name === "train" ? "config.yaml" : "sft.yaml");
      const talk = [
        { role: "user", content: "a" },
        { role: "assistant", content: "b" },
      ];
      writeFileSync(join(folder, "talks.jsonl"), JSON.stringify({ messages: talk }));
      const trainer = { default_local_dir: folder, project_name: "cria", total_training_steps: 1, threads: 1 };
      if (name === "sft")
        writeFileSync(
          file,
          JSON.stringify({ model: { path: "x", lora_rank: 4 }, data: { train_files: "talks.jsonl" }, trainer }),
        );
      const words = [name, file, `${section}.path=${model}`] as const;
      expect(await run(...words), output.stderr).toBe(0);
      // Loading it fails from here on.
      writeFileSync(model, "not a model");
      expect(await run(...words, `${section}.lora_alpha=64`)).toBe(1);
      expect(output.stderr).toMatch(/^error .*lora_alpha: /m);
      expect(
        await run(
          ...words,
          `${section}.lora_alpha=64`,
          "trainer.resume_mode=resume_path",
          `trainer.resume_from_path=${join(folder, "cria", "default", "checkpoints", "global_step_1")}`,
          "trainer.experiment_name=other",
        ),
      ).toBe(1);
      expect(output.stderr.match(/^error .*lora_alpha: /gm)).toHaveLength(2);
      expect(existsSync(join(folder, "cria", "other"))).toBe(false);
      const release = lockFile(join(folder, "cria", "default.run.lock"));
      expect(await run(...words)).toBe(1);
      release!();
      expect(output.stderr).toMatch(/^error .*cria\/default: /m);
      expect(output.stderr).not.toMatch(/GGUF/);
    },
  );

  it("Ctrl-C ends it with code 130, and no error", async () => {
    const { folder } = await writeTinyRun(models, {
      trainer: { total_training_steps: 100_000, val_before_train: false },
    });
    // After one step, however long that takes here.
    const timer = setInterval(() => {
      if (!existsSync(join(folder, "cria", "default", "metrics.jsonl"))) return;
      clearInterval(timer);
      process.emit("SIGINT");
    }, 20);
    expect(await run("train", join(folder, "config.yaml"))).toBe(130);
    expect(output.stderr).toMatch(/training stopped after step \d+ of 100000\n {2}saved: /);
    expect(output.stderr).not.toMatch(/error/);
  });
});

describe("errors", () => {
  it("have no stack, unless asked for", async () => {
    expect(await run("train", "none.yaml")).toBe(1);
    expect(output.stderr).toMatch(/none\.yaml: /);
    expect(output.stderr).not.toMatch(/\n\s+at /);
    expect(await run("train", "none.yaml", "--verbose")).toBe(1);
    expect(output.stderr).toMatch(/\n\s+at /);
  });

  it("a run that fails later leaves no half-written file", async () => {
    const { folder } = await writeTinyRun(models, { reward: 'throw new Error("no judge today");' });
    expect(await run("train", join(folder, "config.yaml"), "trainer.experiment_name=y")).toBe(1);
    expect(output.stderr).toMatch(/no judge today/);
    expect(existsSync(join(folder, "cria", "y", "adapter.gguf"))).toBe(false);
  });
});
