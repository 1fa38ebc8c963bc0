import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Trajectory } from "@cria/core";
import { parseFilter, readDump } from "@cria/records";
import { runRollouts } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { loadConfig, openTraining, type Training, trainConfigSchema } from "@cria/trainer";
import { readExamples } from "@cria/trainer/internal";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeRollouts } from "./write-rollouts.js";

const folder = mkdtempSync(join(tmpdir(), "cria-write-rollouts-"));
let training: Training;
let trajectories: Trajectory[];
beforeAll(async () => {
  const file = join(import.meta.dirname, "..", "..", "..", "..", "examples", "calculator", "config.yaml");
  const { values, folder: configFolder } = loadConfig(trainConfigSchema, file, ["trainer.threads=1"]);
  training = await openTraining(values, configFolder);
  const shared = {
    ...training.environment,
    tokenizer: training.policy.tokenizer,
    seed: 0,
    n: 4,
    temperature: 1,
    topP: 1,
    topK: 0,
    step: 0,
  };
  trajectories = await runRollouts(training.policy.engine, training.trainRows.slice(0, 8), shared);
});
afterAll(async () => {
  await training.dispose();
  rmSync(folder, { recursive: true });
});

const write = (keep: string | null, form: "messages" | "trajectories", some = trajectories) =>
  writeRollouts(training, some, {
    rows: training.trainRows,
    keep: keep === null ? null : parseFilter(keep),
    form,
    file: join(folder, `${form}.jsonl`),
  });

it("supervised training reads kept messages with the tokens and masks of the rollouts", async () => {
  const kept = trajectories.filter((t) => t.reward >= 1 && t.finishReason === "stop");
  const calls = kept.filter((t) => t.metrics.tool_calls! > 0);
  // The test needs good and bad conversations, with calls and without.
  expect(calls.length).toBeGreaterThan(2);
  expect(kept.length).toBeLessThan(trajectories.length);
  const written = await write("reward>=1 && !truncated", "messages");
  expect(written).toMatchObject({ written: kept.length, unusable: 0 });
  const rows = readFileSync(written.file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  for (const row of rows) expect(Object.keys(row)).toEqual(["messages", "tools"]);
  const options = { messagesKey: "messages", toolsKey: "tools", maxLength: 1000 };
  const { examples, dropped } = await readExamples(
    [written.file],
    DeltaTokenizer.forModel(training.policy.engine),
    options,
  );
  expect([examples.length, dropped]).toEqual([kept.length, 0]);
  const isSame = kept.map((t, i) => {
    const { tokenIds, lossMask } = examples[i]!;
    return tokenIds.join() === t.tokenIds.join() && lossMask.join() === t.responseMask.join();
  });
  // A model may spell a text in other tokens than its tokenizer: exactly those conversations are counted.
  expect(isSame.filter((same) => !same)).toHaveLength(written.inexact);
  expect(isSame.filter((same) => same).length).toBeGreaterThan(0.7 * kept.length);
  for (const [i, same] of isSame.entries())
    if (!same)
      expect(training.policy.engine.detokenize(examples[i]!.tokenIds)).toBe(
        training.policy.engine.detokenize(kept[i]!.tokenIds),
      );
});

it("leaves out failed and cut conversations, and writes the rest", async () => {
  const [first, second, third] = trajectories.filter((t) => t.finishReason === "stop") as [
    Trajectory,
    Trajectory,
    Trajectory,
  ];
  const cut: Trajectory = { ...second, finishReason: "length" };
  const failed: Trajectory = { ...third, error: "offline" };
  expect(await write(null, "messages", [first, cut, failed])).toMatchObject({ written: 1, unusable: 2 });
  await expect(write(null, "messages", [cut, failed])).rejects.toMatchObject({
    code: "data/nothing-kept",
    subject: expect.stringContaining("messages.jsonl"),
    received: "2 conversations, rewards from 0 to 1",
  });
});

it("writes trajectories as a dump, whose first line describes the tools", async () => {
  const { written, file } = await write("reward<1", "trajectories");
  const lines = [];
  for await (const line of readDump(file)) lines.push(line);
  expect(lines).toHaveLength(written);
  expect(lines.every((line) => line.reward! < 1)).toBe(true);
  expect(lines.map((line) => line.tool_schemas.length)).toEqual([1, ...Array(written - 1).fill(0)]);
  expect(lines[0]).toMatchObject({ step: null, ground_truth: expect.anything(), request_states: expect.any(Array) });
});

it("an empty selection is an error that describes the conversations, and writes nothing", async () => {
  rmSync(join(folder, "messages.jsonl"), { force: true });
  await expect(write("reward>5", "messages")).rejects.toMatchObject({
    code: "data/nothing-kept",
    subject: expect.stringContaining("messages.jsonl"),
    received: "32 conversations, rewards from 0 to 1",
  });
  expect(() => readFileSync(join(folder, "messages.jsonl"))).toThrow(/ENOENT/);
});
