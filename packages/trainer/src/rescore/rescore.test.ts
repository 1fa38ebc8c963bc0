import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunEvent } from "../events.js";
import { runTraining } from "../run/run-training.js";
import { openTraining } from "../run/training.js";
import { writeTinyRun } from "../testing/tiny-training.js";
import { type RescoreOptions, rescoreRun } from "./rescore-run.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let folder: string;
let run: string;
/** The files of the run and what they held before anything was judged again. */
let files: Map<string, string>;

/** Files below a folder, by their paths in it. */
function readFiles(path: string): Map<string, string> {
  const names = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    names.map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return [file, readFileSync(file, "latin1")];
    }),
  );
}

beforeAll(async () => {
  const made = await writeTinyRun(models, {
    // Two of three prompts are judged; the judge breaks at the third.
    reward: 'if (truth === "bb") throw new Error("offline"); return { score: text.length, mine: 1 };',
    data: { val_files: "rows.jsonl" },
    trainer: { total_training_steps: 2, test_freq: 2, logger: ["file"], save_freq: -1 },
    rewardModel: { aggregation: { trajectory_weight: 2 } },
  });
  folder = made.folder;
  const training = await openTraining(made.config, folder);
  await runTraining(training, { configFolder: folder });
  await training.dispose();
  run = join(folder, "cria", "default");
  files = readFiles(run);
});

function writeReward(name: string, body: string): string {
  const file = join(folder, name);
  writeFileSync(file, `export function score(source, text, truth, info, kwargs) { ${body} }\n`);
  return `${file}#score`;
}

async function read(path: string, file: string): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(path, file))) lines.push(line);
  return lines;
}

let runs = 0;
async function rescore(options: RescoreOptions) {
  const events: RunEvent[] = [];
  const out = join(folder, "judged", String(runs++));
  const result = await rescoreRun(run, { out, report: (event) => events.push(event), ...options });
  return { result, out, events };
}

const readMetrics = (path: string) =>
  readFileSync(join(path, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);

describe("a run that is judged again", () => {
  it("has the new scores on the tokens, the old ones beside them, and leaves the first run as it was", async () => {
    const reward = writeReward("index.mjs", "return { score: 1 + info.index, seen: text.length };");
    const { result, out, events } = await rescore({ reward });
    const lines = await read(out, "rollouts/1.jsonl");
    const first = await read(run, "rollouts/1.jsonl");
    expect(lines).toHaveLength(12);
    for (const [i, line] of lines.entries()) {
      const before = first[i]!;
      // The third prompt too, whose judge had failed: its mask is that of its turn.
      expect(line).toMatchObject({
        uid: before.uid,
        score: 1 + line.row!,
        success: true,
        advantage: null,
        error: null,
      });
      expect(line.reward).toBe(2 * (1 + line.row!));
      expect(line.extra.seen).toBe(line.messages.at(-1)!.content.length);
      expect(line.extra).not.toHaveProperty("mine");
      expect(line.before).toMatchObject({ score: before.score, reward: before.reward, error: before.error });
      expect(line.parts).toEqual([{ name: "score", value: line.score, weight: 1, by: "score of index.mjs" }]);
      const last = line.response_mask.lastIndexOf(1);
      expect(line.token_level_rewards).toEqual(line.token_ids.map((_, t) => (t === last ? line.reward : 0)));
      expect(line.rollout_logprobs).toEqual(before.error === null ? before.rollout_logprobs : []);
      if (before.error === null) expect(line.response_mask).toEqual(before.response_mask);
      else expect(line.metrics).not.toHaveProperty("failed");
    }
    expect(first.filter(({ error }) => error !== null)).toHaveLength(4);
    expect(result.rollouts).toMatchObject({ conversations: 24, skipped: 0, failed: 0, changed: expect.any(Number) });
    expect(result.rollouts.after).toEqual({ score: 2, reward: 4, success: 1 });
    expect(result.validation.conversations).toBe(6);
    const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;
    const [step] = readMetrics(out);
    expect(step).toMatchObject({ "training/global_step": 0 });
    expect(readMetrics(out)[1]).toMatchObject({
      "training/global_step": 1,
      "reward/score/mean": 2,
      "critic/score/mean": 4,
      "rollout/judge_failed": 0,
      "rescore/score_before/mean": mean(first.flatMap(({ score }) => score ?? [])),
      "rescore/score_after/mean": 2,
    });
    expect(readMetrics(out)[2]).toMatchObject({ "val-core/test/reward/mean@1": 4 });
    expect(JSON.parse(readFileSync(join(out, "rescore.json"), "utf8"))).toMatchObject({ rollouts: result.rollouts });
    expect(events.filter(({ type }) => type === "notice")).toEqual([]);
    const progress = events.filter((event) => event.type === "progress" && event.work === "rescore");
    expect(progress.at(-1)).toMatchObject({ done: 30, total: 30, isEnd: true });
    expect(readFiles(run)).toEqual(files);
  });

  it("names the largest changes, first of all scores that were gained or lost", async () => {
    const reward = writeReward("mostly.mjs", "return info.index === 1 ? 5 : text.length + (info.index === 2 ? 7 : 0);");
    const { result } = await rescore({ reward, most: 100 });
    const sizes = result.mostChanged.map(({ before, after }) => (before === null ? "new" : after! - before));
    expect(sizes).toEqual([...Array(10).fill("new"), ...Array(10).fill(7)]);
    expect(result.rollouts.changed + result.validation.changed).toBe(20);
  });

  it("can be judged once more, to the same judgements", async () => {
    const reward = writeReward("again.mjs", "return text.length / 4;");
    const once = await rescore({ reward });
    const out = join(folder, "judged", "twice");
    const twice = await rescoreRun(once.out, { reward, out });
    expect(twice.rollouts).toMatchObject({ changed: 0, before: once.result.rollouts.after });
    const strip = (lines: DumpLine[]) => lines.map(({ before: _, ...line }) => line);
    // Logprobs that were lost once stay lost.
    expect(strip(await read(out, "rollouts/2.jsonl"))).toEqual(strip(await read(once.out, "rollouts/2.jsonl")));
  });

  it("has failed conversations where the new judge fails, as in training", async () => {
    const judge = 'if (info.index === 0) throw new Error("no"); return info.index === 1 ? Number.NaN : 1;';
    const { result, out } = await rescore({ reward: writeReward("broken.mjs", judge) });
    expect(result.rollouts).toMatchObject({ failed: 16, after: { score: 1, success: 1 } });
    for (const line of (await read(out, "rollouts/1.jsonl")).filter(({ row }) => row! < 2)) {
      expect(line).toMatchObject({ reward: null, score: null, metrics: { failed: 1, reward_failed: 1 } });
      expect(line.error).toMatch(line.row === 0 ? /the reward function failed: .*no/ : /gave no score/);
      expect(line.response_mask).not.toContain(1);
    }
    expect(readMetrics(out)[1]).toMatchObject({ "rollout/judge_failed": 8, "rollout/kept": 4 });
  });

  it("leaves conversations alone that failed by themselves", async () => {
    const copy = join(folder, "with-failure");
    mkdirSync(join(copy, "rollouts"), { recursive: true });
    for (const name of ["config.json", "run.json"])
      if (existsSync(join(run, name))) writeFileSync(join(copy, name), readFileSync(join(run, name)));
    const lines = (await read(run, "rollouts/1.jsonl")).filter(({ error }) => error === null).slice(0, 2);
    lines[0] = { ...lines[0]!, error: "the interaction broke", reward: null, score: null, finish_reason: "aborted" };
    writeFileSync(join(copy, "rollouts", "1.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const result = await rescoreRun(copy, { reward: writeReward("one.mjs", "return 1;") });
    expect(result.path).toBe(`${copy}-rescored`);
    expect(result.rollouts).toMatchObject({ conversations: 2, skipped: 1, after: { score: 1 } });
    expect((await read(result.path, "rollouts/1.jsonl"))[0]).toEqual(JSON.parse(JSON.stringify(lines[0])));
  });

  it("takes another reward_model from a file, and keys from the command line", async () => {
    const file = join(folder, "other.yaml");
    writeFileSync(file, "custom_reward_function: { path: kw.mjs, name: score, reward_kwargs: { add: 3 } }");
    writeReward("kw.mjs", "return kwargs.add;");
    const { result } = await rescore({ config: file, overrides: ["reward_model.aggregation.trajectory_weight=10"] });
    expect(result.rollouts.after).toEqual({ score: 3, reward: 30, success: 1 });
  });

  it("is judged without extra_info where the rows are gone, and says so", async () => {
    const copy = join(folder, "elsewhere");
    mkdirSync(join(copy, "rollouts"), { recursive: true });
    const config = JSON.parse(readFileSync(join(run, "config.json"), "utf8"));
    writeFileSync(
      join(copy, "config.json"),
      JSON.stringify({ ...config, data: { ...config.data, train_files: ["gone.jsonl"] } }),
    );
    writeFileSync(join(copy, "rollouts", "1.jsonl"), readFileSync(join(run, "rollouts", "1.jsonl")));
    const events: RunEvent[] = [];
    const reward = writeReward("truth.mjs", "return info.index === undefined ? truth.length : -1;");
    const result = await rescoreRun(copy, { reward, report: (event) => events.push(event) });
    expect(result.rollouts.after.score).toBe(2);
    expect(events).toContainEqual({ type: "notice", text: expect.stringMatching(/extra_info.*gone\.jsonl/s) });
  });

  it("is refused with a reason, and then nothing is written", async () => {
    const reward = writeReward("fine.mjs", "return 1;");
    const out = join(folder, "never");
    const refuse = (path: string, options: RescoreOptions) => expect(rescoreRun(path, { out, ...options })).rejects;
    await refuse(run, {}).toMatchObject({ code: "config/missing-argument", subject: "another reward" });
    await refuse(folder, { reward }).toMatchObject({
      code: "data/no-run",
      subject: folder,
      received: expect.stringContaining("config.json"),
    });
    await refuse(run, { reward, overrides: ["data.seed=2"] }).toMatchObject({
      code: "config/bad-override",
      subject: "data",
    });
    await refuse(run, { reward: "./nowhere.ts#f" }).toMatchObject({ code: "config/unreadable" });
    await refuse(run, { reward, out: run }).toMatchObject({ code: "config/bad-argument", subject: run });
    await refuse(run, { reward: writeReward("bug.mjs", "return text.lenght.x;") }).toMatchObject({
      code: "rollout/all-failed",
      subject: "rollouts/1.jsonl",
      received: expect.stringMatching(/row \d, sample \d: .*\(at score/),
    });
    await refuse(run, { reward, mst: 1 } as RescoreOptions).toMatchObject({
      code: "config/unknown-key",
      subject: "rescoreRun: mst",
      expected: 'perhaps "most"',
    });
    const stopped = AbortSignal.abort(new Error("enough"));
    await refuse(run, { reward, signal: stopped }).toThrow("enough");
    const unknown = "custom_reward_function.path=null";
    // No data source "test" has a reward: an error of the config, in the middle of the work.
    await refuse(run, { overrides: [unknown] }).toMatchObject({ code: "config/unknown-data-source" });
    expect(existsSync(out)).toBe(false);
    expect(readFiles(run)).toEqual(files);
  });
});
