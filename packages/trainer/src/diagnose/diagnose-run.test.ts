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

it("judges a run by its folder: evidence is what lies there, and damaged files are left aside", async () => {
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
  const file = join(import.meta.dirname, "../../../rollout/fixtures/dumps/version-2-train.jsonl");
  const [first] = readFileSync(file, "utf8").split("\n");
  writeFileSync(join(dumps, "3.jsonl"), `${JSON.stringify({ ...JSON.parse(first!), tools: ["search"] })}\n`);
  const [found] = await diagnoseRun(folder);
  expect(found).toMatchObject({ rule: "no_calls", evidence: [{ dump: "3" }] });
});
