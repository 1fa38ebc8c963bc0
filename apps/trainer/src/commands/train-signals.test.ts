import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TinyModels } from "@cria/engine/testing";
import { writeTinyRun } from "@cria/trainer/testing";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { runHere } from "../testing/run-here.js";

const output = captureOutput();
const models = new TinyModels();
afterAll(() => models.cleanUp());

// The built command line as users run it: `npm test` builds first.
const bin = join(import.meta.dirname, "..", "..", "bin", "cria.mjs");

/** Trains until a signal comes after some steps. */
async function train(folder: string, signalAfter: { steps: number; name: NodeJS.Signals }, command = "train") {
  const args = [bin, command, join(folder, "config.yaml"), "--json"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const ended = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  while (countSteps(folder) < signalAfter.steps) await sleep(5);
  child.kill(signalAfter.name);
  const [code] = await ended;
  return { code, stderr };
}

/** The same command again, for one step more. */
async function goOn(command: string, folder: string, step: number) {
  await runHere(folder, [command, join(folder, "config.yaml"), "--json", `trainer.total_training_steps=${step + 1}`]);
  expect(process.exitCode, output.stderr).toBeUndefined();
}

const metricsFile = (folder: string) => join(folder, "cria", "default", "metrics.jsonl");

function countSteps(folder: string): number {
  if (!existsSync(metricsFile(folder))) return 0;
  // The first line is from before the training; the last one ends with a newline.
  return readFileSync(metricsFile(folder), "utf8").split("\n").length - 2;
}

describe("cria train that gets a signal", () => {
  for (const [name, exitCode] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    it(`${name}: saves, says how to go on, and ends with ${exitCode}; the same command goes on there`, async () => {
      const { folder } = await writeTinyRun(models, { trainer: { total_training_steps: 100_000 } });
      const { code, stderr } = await train(folder, { steps: 2, name });
      expect(stderr).not.toMatch(/error/);
      expect(code).toBe(exitCode);
      const step = Number(/stopped after step (\d+) of 100000/.exec(stderr)?.[1]);
      expect(stderr).toMatch(new RegExp(`saved: .*global_step_${step}\\n`));
      expect(stderr).toMatch(/go on: cria train \S+config\.yaml --json\n/);
      await goOn("train", folder, step);
      expect(output.stderr).toMatch(new RegExp(`resuming after step ${step}`));
      expect(countSteps(folder)).toBe(step + 1);
    });
  }
});

it("cria train saves when its output is closed, ends with 141, and goes on later", async () => {
  const { folder } = await writeTinyRun(models, { trainer: { total_training_steps: 100_000 } });
  const args = [bin, "train", join(folder, "config.yaml")];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit") as Promise<[number | null]>;
  child.stdout.destroy();
  await once(child.stderr, "data");
  child.stderr.destroy();
  const [code] = await ended;
  expect(code).toBe(141);
  expect(JSON.parse(readFileSync(join(folder, "cria", "default", "end.json"), "utf8"))).toMatchObject({
    status: "interrupted",
  });
  const step = countSteps(folder);
  await goOn("train", folder, step);
  expect(countSteps(folder)).toBe(step + 1);
});

it("cria sft that gets a signal does the same", async () => {
  const folder = mkdtempSync(join(models.folder, "sft-"));
  const talk = [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
  ];
  writeFileSync(join(folder, "talks.jsonl"), JSON.stringify({ messages: talk }));
  const config = {
    model: { path: await models.write(), lora_rank: 4 },
    data: { train_files: "talks.jsonl", train_batch_size: 2 },
    trainer: { default_local_dir: folder, project_name: "cria", total_training_steps: 100_000, threads: 1 },
  };
  writeFileSync(join(folder, "config.yaml"), JSON.stringify(config));
  const { code, stderr } = await train(folder, { steps: 2, name: "SIGTERM" }, "sft");
  expect(code).toBe(143);
  const step = Number(/stopped after step (\d+) of 100000/.exec(stderr)?.[1]);
  expect(stderr).toMatch(new RegExp(`saved: .*global_step_${step}\\n`));
  expect(stderr).toMatch(/go on: cria sft \S+config\.yaml --json\n/);
  await goOn("sft", folder, step);
  expect(output.stderr).toMatch(new RegExp(`resuming after step ${step}`));
});
