import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import type { DumpLine } from "@cria/records";
import { openTraining, runTraining } from "@cria/trainer";
import { writeTinyRun } from "@cria/trainer/testing";
import { type CommandDef, runCommand as runCitty } from "citty";
import { afterAll, beforeAll, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { replayCommand } from "./replay.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
const output = captureOutput();

let path: string;
let lines: DumpLine[];
beforeAll(async () => {
  const { config, folder } = await writeTinyRun(models, {
    trainer: { total_training_steps: 2, logger: ["file"], save_freq: 1 },
  });
  const training = await openTraining(config, folder);
  await runTraining(training, { configFolder: folder });
  await training.dispose();
  path = join(folder, "cria", "default");
  const text = readFileSync(join(path, "rollouts", "2.jsonl"), "utf8").trim();
  lines = text.split("\n").map((line) => JSON.parse(line) as DumpLine);
});

async function replay(...rawArgs: string[]): Promise<number> {
  output.stdout = "";
  output.stderr = "";
  process.exitCode = undefined;
  await runCitty(replayCommand as CommandDef, { rawArgs });
  const code = Number(process.exitCode ?? 0);
  process.exitCode = undefined;
  return code;
}

it("says how many conversations of a step are equal, by line or by name", async () => {
  expect(await replay(path)).toBe(0);
  expect(output.stdout).toMatch(/12 of 12 conversations are equal, ids and logprobs/);
  const { uid, sample, token_ids } = lines[4]!;
  expect(await replay(path, "--step", "2", "--trajectory", "4", "--json")).toBe(0);
  expect(JSON.parse(output.stdout)).toEqual({
    equal: 1,
    of: 1,
    trained_steps: 0,
    conversations: [expect.objectContaining({ uid, sample, equal: true, tokens: token_ids.length, difference: null })],
  });
  expect(output.stderr).toBe("");
  expect(
    await replay(path, "--trajectory", `${uid}#${sample}`, "--until", String(token_ids.length - 2), "--json"),
  ).toBe(0);
  expect(JSON.parse(output.stdout).conversations).toMatchObject([{ uid, sample, tokens: token_ids.length - 2 }]);
});

it("exits with 1 and shows the first token that differs", async () => {
  const copy = `${path}-other`;
  cpSync(path, copy, { recursive: true });
  const [first, ...rest] = lines;
  const t = first!.response_mask.indexOf(1);
  const other = { ...first!, token_ids: first!.token_ids.with(t, (first!.token_ids[t]! + 1) % 250) };
  const text = [other, ...rest].map((line) => `${JSON.stringify(line)}\n`).join("");
  writeFileSync(join(copy, "rollouts", "2.jsonl"), text);
  expect(await replay(copy)).toBe(1);
  expect(output.stdout).toMatch(/11 of 12 conversations are equal/);
  expect(output.stdout).toMatch(new RegExp(`${first!.uid}#0, token ${t}: recorded .*, now .*`));
});

it("goes on from a changed token, and draws it", async () => {
  const { start } = lines[0]!.turns[0]!;
  expect(await replay(path, "--trajectory", "0", "--edit", `${start}=65`, "--live-tools", "--json")).toBe(0);
  const { conversation, ...rest } = JSON.parse(output.stdout);
  expect(rest).toEqual({ token: start, replacement: 65, trained_steps: 0 });
  expect(conversation.token_ids[start]).toBe(65);
  expect(conversation.reward).toEqual(expect.any(Number));
  expect(await replay(path, "--trajectory", "0", "--edit", `${start}=A`)).toBe(0);
  expect(output.stdout).toMatch(/token \d+: .* was changed to "A"/);
  expect(output.stdout).toMatch(/--live-tools/);
});

it.each([
  [["--edit", "5=A"], /--edit.*--trajectory/s],
  [["--trajectory", "99"], /--trajectory.*0 to 11/s],
  [["--trajectory", "0", "--edit", "A"], /--edit.*57=\+/s],
  [["--trajectory", "0", "--edit", "60=two words"], /--edit: [\s\S]*"two words"/],
  [["--live-tools"], /--live-tools.*expected: --edit/s],
  [["--step", "7"], /step 7|1 to 2/s],
])("refuses %j", async (args, message) => {
  expect(await replay(path, ...args)).toBe(1);
  expect(output.stderr).toMatch(message);
});
