import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { openTraining, RunFolder, runTraining } from "@cria/trainer";
import type { RescoreResult } from "@cria/trainer/internal";
import { writeTinyRun } from "@cria/trainer/testing";
import { type CommandDef, runCommand as runCitty } from "citty";
import { afterAll, beforeAll, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { rescoreCommand } from "./rescore.js";
import { sftCommand } from "./sft.js";
import { showCommand } from "./show.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
const output = captureOutput();

async function run(command: CommandDef, ...rawArgs: string[]): Promise<number> {
  output.stdout = "";
  output.stderr = "";
  process.exitCode = undefined;
  await runCitty(command, { rawArgs });
  return Number(process.exitCode ?? 0);
}
const rescore = (...rawArgs: string[]) => run(rescoreCommand as CommandDef, ...rawArgs);

let folder: string;
let path: string;
beforeAll(async () => {
  const made = await writeTinyRun(models, {
    reward: "return 0.25;",
    trainer: { total_training_steps: 1, logger: ["file"], save_freq: -1 },
  });
  folder = made.folder;
  path = join(folder, "run");
  const training = await openTraining(made.config, folder);
  const created = await RunFolder.create(path);
  await created.writeConfig(made.config);
  await runTraining(training, { configFolder: folder, folder: created });
  await training.dispose();
  writeFileSync(
    join(folder, "strict.ts"),
    'export const score = (_source: string, _text: string, truth: string) => {\n  if (truth === "ccc") throw new Error("no judge for c");\n  return truth.length;\n};\n',
  );
});

it("reports the changes, and writes a run that cria show draws", async () => {
  const out = join(folder, "strict");
  expect(await rescore(path, "--reward", `${join(folder, "strict.ts")}#score`, "--out", out)).toBe(0);
  expect(output.stdout).toMatch(/12 conversations of the training.*: 12 have another score, 4 another success/);
  expect(output.stdout).toMatch(/score +mean 0\.250 -> .*1\.500/);
  expect(output.stdout).toMatch(/the judge failed at 4/);
  expect(output.stdout).toMatch(/0\.250 -> none .*sample \d \(rollouts\/1\.jsonl\): .*no judge for c/);
  expect(await run(showCommand as CommandDef, out, "--filter", "score > score_before", "--json")).toBe(0);
  const shown = JSON.parse(output.stdout) as { matched: number; total: number };
  expect(shown).toMatchObject({ matched: 8, total: 12 });
  expect(await run(showCommand as CommandDef, out)).toBe(0);
  expect(output.stdout).toContain("before cria rescore");
  // Again into the same folder: existing files are not overwritten.
  expect(await rescore(path, "--reward", `${join(folder, "strict.ts")}#score`, "--out", out)).toBe(1);
  expect(output.stderr).toMatch(/strict: [\s\S]*--out/);
});

it("leaves dumps that cria sft reads; --keep chooses among them", async () => {
  const dump = join(folder, "strict", "rollouts", "1.jsonl");
  const { actor_rollout_ref } = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
  const config = join(folder, "sft.yaml");
  const trainer = { default_local_dir: folder, total_training_steps: 1, threads: 1 };
  const model = { path: actor_rollout_ref.model.path, lora_rank: 2 };
  writeFileSync(config, JSON.stringify({ model, data: { train_files: dump }, trainer }));
  // A random model's answers never end by themselves: the filter selected only cut ones.
  expect(await run(sftCommand as CommandDef, config, "--keep", "score >= 2", "--json")).toBe(1);
  expect(output.stderr).toMatch(/\b12 that/);
  expect(await run(sftCommand as CommandDef, config, "--keep", "score >=", "--json")).toBe(1);
  expect(output.stderr).toMatch(/data\.keep/);
});

it("gives the result alone as JSON, and its metrics to trackers", async () => {
  const keys = ["custom_reward_function.reward_kwargs={}", "--json", "--logger", "tensorboard"];
  expect(await rescore(path, "--reward", `${join(folder, "reward.mjs")}#computeScore`, ...keys)).toBe(0);
  const result = JSON.parse(output.stdout) as RescoreResult;
  expect(result).toMatchObject({ path: `${path}-rescored`, rollouts: { changed: 0, conversations: 12 } });
  expect(readFileSync(join(result.path, "metrics.jsonl"), "utf8")).toContain('"reward/score/mean":0.25');
  expect(existsSync(join(result.path, "tensorboard"))).toBe(true);
});

it("refuses impossible requests with a message", async () => {
  expect(await rescore(path)).toBe(2);
  expect(output.stderr).toMatch(/--reward/);
  expect(await rescore(path, "--reward", "./r.ts", "--logger", "excel")).toBe(1);
  expect(output.stderr).toMatch(/tensorboard, mlflow, wandb/);
  expect(await rescore(join(folder, "nowhere"), "--reward", "./r.ts")).toBe(1);
});
