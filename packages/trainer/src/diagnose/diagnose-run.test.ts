import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { diagnoseRun } from "./diagnose-run.js";

const work = mkdtempSync(join(tmpdir(), "cria-diagnose-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const line = (step: number) =>
  `${JSON.stringify({
    "training/global_step": step,
    "rollout/kept": 8,
    "critic/score/mean": 0,
    "critic/score/max": 0,
    "critic/score/min": 0,
    "reward/score/mean": 0,
    "critic/advantages/max": 0,
    "critic/advantages/min": 0,
    "tool_call_counts/mean": 0,
    "tool_call_counts/max": 0,
  })}\n`;

it("judges a run by the files of its folder, and leaves damaged ones aside", async () => {
  const folder = join(work, "run");
  mkdirSync(join(folder, "rollouts"), { recursive: true });
  expect(await diagnoseRun(folder)).toEqual([]);
  writeFileSync(join(folder, "metrics.jsonl"), `${line(1)}${line(2)}${line(3)}{"training/glo`);
  const none = await diagnoseRun(folder);
  expect(none).toMatchObject([{ rule: "no_reward", severity: "high", evidence: [] }]);
  writeFileSync(join(folder, "rollouts", "3.jsonl"), "{nonsense\n");
  writeFileSync(join(folder, "config.json"), "{");
  expect(await diagnoseRun(folder)).toMatchObject([{ evidence: [{ dump: "3", filter: null, conversations: [] }] }]);
  expect(await diagnoseRun(join(work, "none"))).toEqual([]);
});

it("finds the conversations where the config put them, and in them whether there are tools", async () => {
  const folder = join(work, "elsewhere");
  const dumps = join(work, "dumps");
  for (const path of [folder, dumps]) mkdirSync(path);
  writeFileSync(join(folder, "metrics.jsonl"), line(1) + line(2) + line(3));
  writeFileSync(join(folder, "config.json"), JSON.stringify({ trainer: { rollout_data_dir: dumps } }));
  const file = join(import.meta.dirname, "../../../records/fixtures/dumps/version-2-train.jsonl");
  const [first] = readFileSync(file, "utf8").split("\n");
  writeFileSync(join(dumps, "3.jsonl"), `${JSON.stringify({ ...JSON.parse(first!), tools: ["search"] })}\n`);
  const [found] = await diagnoseRun(folder);
  expect(found).toMatchObject({ rule: "no_calls", evidence: [{ dump: "3" }] });
});

it("sees the cria sft that a run began with, by the adapter or the model that lies in its folder", async () => {
  const [sft, folder] = [join(work, "sft"), join(work, "after-sft")];
  for (const path of [sft, folder]) mkdirSync(path);
  const losses = [7.8, 4, 1.6, 1.5, 1.5, 1.4, 1.5];
  const write = (lines: object[]) =>
    writeFileSync(join(sft, "metrics.jsonl"), lines.map((metrics) => `${JSON.stringify(metrics)}\n`).join(""));
  const trained = losses.map((loss, i) => ({ "training/global_step": i + 1, "train/loss": loss }));
  write(trained);
  writeFileSync(join(folder, "metrics.jsonl"), line(1) + line(2) + line(3));
  writeFileSync(join(folder, "run.json"), JSON.stringify({ config_folder: work }));
  const find = async (model: object) => {
    writeFileSync(join(folder, "config.json"), JSON.stringify({ actor_rollout_ref: { model } }));
    return (await diagnoseRun(folder))[0]!.remedy;
  };
  const adapter = { path: "model.gguf", lora_adapter_path: "sft/adapter.gguf" };
  expect(await find(adapter)).toMatch(/after 7 steps at a loss of 1\.5 a token/);
  expect(await find({ path: "sft/model.gguf" })).toMatch(/at a loss of 1\.5 a token/);
  expect(await find({ path: "model.gguf", lora_adapter_path: null })).toContain("(cria sft)");
  write([...trained, { "training/global_step": 7, "val/loss": 1.9 }]);
  expect(await find(adapter)).toMatch(/at a loss of 1\.9 a token/);
  // A run of cria train has no such loss.
  write([{ "training/global_step": 7, "reward/score/mean": 0.3 }]);
  expect(await find(adapter)).toContain("(cria sft)");
});
