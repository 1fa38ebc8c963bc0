import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import { afterAll, expect, it } from "vitest";
import { openTinyTraining } from "../testing/tiny-training.js";
import { runTraining } from "./run-training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** Values that JSON cannot represent, which user code may return with a score or put into a row. */
const HOSTILE = `
export function makeHostile() {
  const circle = { name: "circle" };
  circle.self = [circle];
  return {
    big: 2n ** 70n,
    nan: NaN,
    infinity: -Infinity,
    circle,
    half: "a\\ud83db",
    lines: "a\\u2028b\\nc\\u0000",
    map: new Map([[{}, 1n]]),
    date: new Date(NaN),
    bytes: new Float32Array([NaN]),
    call: () => 1,
    symbol: Symbol("s"),
    nothing: undefined,
    json: { kept: 1, toJSON() { throw new Error("no JSON"); } },
  };
}
export const makeDeep = () => JSON.parse("[".repeat(5000) + "]".repeat(5000));
export const makeWorse = () => ({ kept: 1, get bad() { throw new Error("no"); } });`;

it("dumps of a training and its validation hold any values of rows and judges", async () => {
  writeFileSync(join(models.folder, "hostile.mjs"), HOSTILE);
  const hostile = join(models.folder, "hostile.mjs");
  const map = join(models.folder, "map.mjs");
  writeFileSync(
    map,
    `import { makeHostile } from "./hostile.mjs";
     export const row = (record) => ({
       ...record,
       reward_model: { ground_truth: makeHostile() },
       extra_info: { ...record.extra_info, more: makeHostile() },
     });`,
  );
  const training = await openTinyTraining(models, {
    // The score itself is valid; NaN, BigInt and similar values accompany it.
    reward: `return import(${JSON.stringify(hostile)}).then(({ makeDeep, makeHostile, makeWorse }) =>
      ({ score: 0.5, ...makeHostile(), more: makeHostile(), worse: makeWorse(), deep: makeDeep() }));`,
    data: { map: `${map}#row`, val_files: "rows.jsonl" },
    trainer: { total_training_steps: 2, val_before_train: false },
  });
  const { path } = await runTraining(training, {
    configFolder: training.folder,
    trackers: [],
  });
  const files = ["rollouts/1.jsonl", "rollouts/2.jsonl", "validation/2.jsonl"].map((name) => join(path, name));
  expect([...readdirSync(join(path, "rollouts")), ...readdirSync(join(path, "validation"))]).toHaveLength(3);
  for (const file of files) {
    // The file is valid UTF-8 with one conversation per line, for any reader.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
    const lines: DumpLine[] = [];
    for await (const line of readDump(file)) lines.push(line);
    expect(lines).toHaveLength(text.trimEnd().split("\n").length);
    for (const line of lines) {
      expect(line.error).toBeNull();
      expect(line.reward).toBe(0.5);
      const truth = line.ground_truth as Record<string, unknown>;
      for (const given of [truth, line.extra]) {
        expect(given).toMatchObject({ big: "1180591620717411303424", nan: "NaN", infinity: "-Infinity" });
        expect(JSON.stringify(given)).toMatch(/circle/);
      }
    }
  }
  for (const line of readFileSync(join(path, "metrics.jsonl"), "utf8").trimEnd().split("\n"))
    for (const [name, value] of Object.entries(JSON.parse(line))) expect(Number.isFinite(value), name).toBe(true);
});

it.each([
  ["a getter that throws", "makeWorse", "no"],
  ["thousands of levels", "makeDeep", "Maximum call stack size exceeded"],
])("a row with %s ends the run, and is named", async (_, name, reason) => {
  writeFileSync(join(models.folder, "hostile.mjs"), HOSTILE);
  const map = join(models.folder, `${name}.mjs`);
  writeFileSync(
    map,
    `import { ${name} } from "./hostile.mjs";
     export const row = (record) => ({ ...record, extra_info: { ...record.extra_info, more: ${name}() } });`,
  );
  const training = await openTinyTraining(models, {
    data: { map: `${map}#row` },
    trainer: { total_training_steps: 1 },
  });
  const options = { configFolder: training.folder, trackers: [] };
  await expect(runTraining(training, options)).rejects.toMatchObject({
    code: "data/bad-row",
    subject: expect.stringMatching(/^\S*rows\.jsonl, line \d$/),
    received: reason,
    remedy: expect.stringContaining("data.map"),
  });
});
