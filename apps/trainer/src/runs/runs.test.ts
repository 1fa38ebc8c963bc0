import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { RunLock } from "@cria/trainer/internal";
import { afterAll, describe, expect, it } from "vitest";
import { findRuns } from "./find-runs.js";
import { makeMetricTable } from "./metrics-file.js";
import { RunReader, readRun } from "./run-reader.js";

const root = mkdtempSync(join(tmpdir(), "cria-runs-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const fixtures = join(import.meta.dirname, "..", "..", "..", "..", "packages", "records", "fixtures", "dumps");
const dump = readFileSync(join(fixtures, "version-1-train.jsonl"), "utf8");

/** Writes files by their path; returns the folder. */
function write(name: string, files: Record<string, string>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name, path)), { recursive: true });
    writeFileSync(join(root, name, path), text);
  }
  return join(root, name);
}

const config = (total: number | null = null) =>
  JSON.stringify({
    actor_rollout_ref: { model: { path: "/models/tiny.gguf" }, rollout: { seed: 3 } },
    algorithm: { adv_estimator: "grpo" },
    trainer: { total_training_steps: total },
  });
const line = (step: number, more: Record<string, number | null> = {}) =>
  `${JSON.stringify({ "training/global_step": step, "perf/time_per_step": 2, "perf/total_num_tokens": 100, ...more })}\n`;
const success = (value: number) => ({ "reward/score/mean": value });
const heldOut = (value: number) => ({ "val-core/a/b/acc/mean@4": value, "val-core/a/b/acc/best@4/mean": 1 });
const live = (process: number, at = Date.now()) =>
  JSON.stringify({
    format_version: 2,
    at,
    process,
    step: 4,
    total: 9,
    phase: "rollout",
    conversations: { done: 1, generating: 2, waiting_for_tools: 0, total: 3 },
    tokens_per_second: 10,
    seconds: {
      ...{ decoding: 1, waiting_for_tools: 0, waiting_for_groups: 0 },
      ...{ scoring: 0, training: 0, validation: 0, other: 0 },
    },
    staleness: 0,
    eta: null,
  });

describe("finding runs", () => {
  it("takes run folders and those below, with names that are safe in an address, and skips the rest", async () => {
    const base = write("found", {
      "p/e/config.json": config(),
      "p/e/rollouts/1.jsonl": dump,
      "p/e.old-1/metrics.jsonl": line(1),
      "p/a b/c/metrics.jsonl": line(1),
      "demo/summary.json": "{}",
      "demo/metrics.jsonl": line(1),
      "model/config.json": '{"architectures":["Llama"]}',
      "some/notes.jsonl": '{"text":"no conversation"}\n',
      "rolled/trajectories.jsonl": dump,
      ".hidden/metrics.jsonl": line(1),
      "node_modules/x/metrics.jsonl": line(1),
    });
    symlinkSync(base, join(base, "p", "loop"));
    symlinkSync(join(base, "nowhere"), join(base, "p", "broken"));
    const runs = await findRuns([base, join(base, "p", "e"), join(root, "missing")]);
    expect(runs.map(({ id, name }) => [id, name])).toEqual([
      ["demo", "demo"],
      ["p~a_b~c", "p/a b/c"],
      ["p~e", "p/e"],
      ["p~e.old-1", "p/e.old-1"],
      ["rolled", "rolled"],
    ]);
    expect(await findRuns([join(base, "p", "e"), join(base, "rolled", "trajectories.jsonl")])).toMatchObject([
      { id: "e", path: join(base, "p", "e") },
      { id: "trajectories.jsonl" },
    ]);
  });

  it("gives runs of one name in several folders ids of their own", async () => {
    const [a, b] = ["one", "two"].map((name) => write(name, { "e/metrics.jsonl": line(1) }));
    expect((await findRuns([a!, b!])).map(({ id }) => id)).toEqual(["e", "e~2"]);
  });
});

describe("a run", () => {
  it("is summarized from its config, metrics and dumps", async () => {
    const path = write("whole", {
      "config.json": config(2),
      "run.json": JSON.stringify({ model: "x", config_folder: "/", started: "2026-01-02T03:04:05.000Z" }),
      "metrics.jsonl":
        line(0, heldOut(0.25)) + line(1, success(0.5)) + line(2, { ...success(0.75), ...heldOut(1), odd: null }),
      "rollouts/2.jsonl": dump,
      "rollouts/10.jsonl": dump,
      "validation/2.jsonl": dump,
      "validation/asked-1.jsonl": dump,
      "validation/after.jsonl": dump,
      "end.json": JSON.stringify({ status: "ended", error: null, at: "" }),
    });
    const [run] = await findRuns([path]);
    const reader = new RunReader(run!);
    expect(await reader.refresh()).toMatchObject({
      id: "whole",
      status: "ended",
      step: 2,
      total: 2,
      startedAt: Date.parse("2026-01-02T03:04:05.000Z"),
      seconds: 6,
      tokens: 300,
      model: "tiny.gguf",
      algorithm: "grpo",
      seed: 3,
      before: 0.25,
      after: 1,
      curve: [0.5, 0.75],
      trouble: null,
    });
    expect(reader.dumps.map(({ id, kind, step }) => [id, kind, step])).toEqual([
      ["asked-1", "asked", 1],
      ["2", "training", 2],
      ["validation-2", "validation", 2],
      ["10", "training", 10],
      ["validation-after", "validation", null],
    ]);
    expect(makeMetricTable(reader.metrics.rows, reader.heldOut)).toMatchObject({
      steps: [0, 1, 2],
      seconds: [2, 4, 6],
      tokens: [100, 200, 300],
      columns: { "reward/score/mean": [null, 0.5, 0.75], odd: [null, null, null] },
      heldOut: [
        { step: 0, success: 0.25 },
        { step: 2, success: 1 },
      ],
    });
  });

  it("reads metrics as they grow: a line counts when it is whole, and a rewound file is read anew", async () => {
    const path = write("grows", { "metrics.jsonl": line(1) + line(2).slice(0, 20) });
    const file = join(path, "metrics.jsonl");
    const [run] = await findRuns([path]);
    const { metrics } = new RunReader(run!);
    await metrics.refresh();
    expect([metrics.rows.length, metrics.damaged]).toEqual([1, 0]);
    appendFileSync(file, line(2).slice(20) + line(3));
    expect(await metrics.refresh()).toBe(true);
    expect(await metrics.refresh()).toBe(false);
    expect(metrics.rows.map((row) => row.get("training/global_step"))).toEqual([1, 2, 3]);
    writeFileSync(file, line(1));
    await metrics.refresh();
    expect(metrics.rows.length).toBe(1);
  });

  it("has a state: running, failed with its error, stale, empty", async () => {
    const steps = { "config.json": config(5), "metrics.jsonl": line(1) };
    const cases: [string, Record<string, string>, object][] = [
      ["live", { "live.json": live(process.pid) }, { status: "running", step: 4, total: 9 }],
      // A process id that no process has.
      ["dead", { "live.json": live(2 ** 30) }, { status: "stale", step: 1 }],
      ["old-live", { "live.json": live(process.pid, Date.now() - 60_000) }, { status: "stale" }],
      ["failed", { "end.json": '{"status":"failed","error":"no room"}' }, { status: "failed", trouble: /no room/ }],
      ["interrupted", { "end.json": '{"status":"interrupted","error":null}' }, { status: "stale" }],
      ["killed", {}, { status: "stale" }],
      ["older", { "metrics.jsonl": line(5) }, { status: "ended" }],
    ];
    for (const [name, files, expected] of cases) {
      const { trouble, ...rest } = expected as { trouble?: RegExp };
      const summary = await readRun(write(name, { ...steps, ...files }));
      expect(summary, name).toMatchObject(rest);
      if (trouble) expect(summary.trouble).toMatch(trouble);
      else expect(summary.trouble).toBeNull();
    }
    expect(await readRun(write("only-config", { "config.json": config() }))).toMatchObject({ status: "empty" });
    const locked = write("locked", steps);
    const lock = await RunLock.acquire(locked);
    expect((await readRun(`${locked}/`)).status).toBe("running");
    lock.release();
    expect((await readRun(locked)).status).toBe("stale");
  });

  it("has held-out success by any judge: sources count alike; failed validations and one before training do not count", async () => {
    const judged = { "val-core/a/reward/mean@1": 1, "val-core/b/acc/mean@2": 0, "val-aux/b/reward/mean@2": 7 };
    const none = { "val-core/a/failed_ratio": 1 };
    const lines = [line(0, { ...none, ...judged }), line(1, none), line(2, { "val-core/a/reward/mean@1": 0.75 })];
    const path = write("numbers", { "config.json": config(), "metrics.jsonl": lines.join("") });
    const reader = new RunReader((await findRuns([path]))[0]!);
    expect(await reader.refresh()).toMatchObject({ before: 0.5, after: 0.75 });
    expect(reader.heldOut).toEqual([
      { step: 0, success: 0.5 },
      { step: 2, success: 0.75 },
    ]);
    writeFileSync(join(path, "metrics.jsonl"), lines.slice(0, 2).join(""));
    expect(await reader.refresh()).toMatchObject({ before: 0.5, after: null });
  });

  it("of sft has a loss instead", async () => {
    const path = write("taught", { "metrics.jsonl": line(1, { "train/loss": 3 }) + line(2, { "train/loss": 2 }) });
    expect(await readRun(path)).toMatchObject({ algorithm: "sft", curve: [3, 2], before: null, after: null });
  });

  it("of a demo has its success before and after; one of rollouts alone has ended", async () => {
    const summary = JSON.stringify({ before: { sampled: 0.1 }, after: { sampled: 0.9 } });
    const demo = write("a-demo", { "summary.json": summary, "metrics.jsonl": line(3), "config.json": config() });
    expect(await readRun(demo)).toMatchObject({ status: "ended", before: 0.1, after: 0.9 });
    const reader = new RunReader((await findRuns([demo]))[0]!);
    await reader.refresh();
    expect(reader.heldOut).toEqual([
      { step: 0, success: 0.1 },
      { step: 3, success: 0.9 },
    ]);
    const rolled = write("a-rollout", { "trajectories.jsonl": dump });
    expect(await readRun(rolled)).toMatchObject({ status: "ended", name: "a-rollout" });
    expect(await readRun(join(rolled, "trajectories.jsonl"))).toMatchObject({ status: "ended" });
  });

  it("has a summary even if it is damaged, gone, or not a run", async () => {
    const hostile = { __proto__: 1, constructor: "x", "training/global_step": 1 };
    const path = write("damaged", {
      "config.json": '{"trainer": ',
      "run.json": "[]",
      "live.json": '"x"',
      "end.json": "\0",
      "metrics.jsonl": `${JSON.stringify(hostile)}\n[1]\nnonsense\n\n${"x".repeat(5 << 20)}\n${line(2)}{"cut`,
      "rollouts/nan.jsonl": "\0\0",
      "rollouts/.jsonl": "",
    });
    mkdirSync(join(path, "rollouts", "7.jsonl"));
    const summary = await readRun(path);
    expect(summary).toMatchObject({ status: "stale", step: 2 });
    expect(summary.trouble).toBe("config.json is damaged; 3 of 5 lines of metrics.jsonl are damaged");
    expect(await readRun(join(root, "never"))).toMatchObject({ status: "empty", step: 0 });
  });
});
