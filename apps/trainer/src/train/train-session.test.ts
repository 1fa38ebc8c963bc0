import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openTinySession, type TinySession } from "../testing/tiny-session.js";
import type { TrackedStep, Tracker } from "../trackers/tracker.js";
import { trainSession } from "./train-session.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

class TestTracker implements Tracker {
  readonly name = "test";
  readonly seen: TrackedStep[] = [];
  ends: string[] = [];
  constructor(private readonly failing = false) {}
  async start() {
    if (this.failing) throw new Error("no such server");
    return { id: 7 };
  }
  async log(steps: readonly TrackedStep[]) {
    this.seen.push(...steps);
  }
  async finish(status: string) {
    this.ends.push(status);
  }
}

const open = (trainer: Record<string, unknown>, signal?: AbortSignal) =>
  openTinySession(models, { data: { val_files: "rows.jsonl" }, trainer, signal });

async function train(session: TinySession, tracker = new TestTracker()) {
  const said: string[] = [];
  const say = (text: string) => said.push(text);
  const configFolder = session.folder;
  const summary = await trainSession(session, { configFolder, silent: true, say, trackers: [tracker] });
  return { ...summary, said, tracker };
}

const readMetrics = (path: string) =>
  readFileSync(join(path, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);

describe("validation", () => {
  it("before training, every test_freq, and at the end; trackers see what the file has", async () => {
    const { path, tracker, metrics } = await train(await open({ total_training_steps: 5, test_freq: 2 }));
    const lines = readMetrics(path);
    const validated = lines.filter((m) => "val-core/test/reward/mean@1" in m).map((m) => m["training/global_step"]);
    expect(validated).toEqual([0, 2, 4, 5]);
    expect(readdirSync(join(path, "validation")).sort()).toEqual(["0.jsonl", "2.jsonl", "4.jsonl", "5.jsonl"]);
    expect(tracker.seen.map(({ step, metrics: m }) => ({ step, ...m }))).toEqual(
      lines.map((m) => ({ step: m["training/global_step"], ...m })),
    );
    expect(tracker.ends).toEqual(["finished"]);
    expect(metrics).toEqual(lines.at(-1));
    expect(JSON.parse(readFileSync(join(path, "trackers.json"), "utf8"))).toEqual({ test: { id: 7 } });
  });

  it("val_before_train: false leaves the first out; a resumed run does not validate again before it", async () => {
    const session = await open({ total_training_steps: 1, val_before_train: false });
    const { path } = await train(session);
    expect(readdirSync(join(path, "validation"))).toEqual(["1.jsonl"]);
    const again = await open({ total_training_steps: 2 });
    again.config.trainer.default_local_dir = session.config.trainer.default_local_dir;
    again.config.actor_rollout_ref.model.path = session.config.actor_rollout_ref.model.path;
    expect((await train(again)).tracker.seen.map(({ step }) => step)).toEqual([2]);
  });

  it("log_val_generations shows the trackers so many conversations, of the same prompts each time", async () => {
    const { path, tracker } = await train(
      await open({ total_training_steps: 3, test_freq: 2, log_val_generations: 2 }),
    );
    expect(tracker.seen.map((s) => [s.step, s.generations?.length])).toEqual([
      [0, 2],
      [1, undefined],
      [2, 2],
      [3, 2],
    ]);
    const rows = readFileSync(join(path, "validation", "0.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((l) => JSON.parse(l));
    expect(rows).toHaveLength(3);
    const [before, , , after] = tracker.seen.map((s) => s.generations ?? []);
    for (const [i, { input, output, groundTruth, score }] of before!.entries()) {
      expect(input).toContain(`<|im_start|>user\n${groundTruth}<|im_end|>`);
      expect(rows.find((row) => row.messages[0].content === groundTruth)).toMatchObject({ reward: score });
      expect(output.length).toBeGreaterThan(0);
      expect(after![i]!.input).toBe(input);
    }
    expect((await train(await open({ total_training_steps: 1 }))).tracker.seen[0]!.generations).toBeUndefined();
  });

  it("val_only judges the newest checkpoint's policy and changes nothing of the run", async () => {
    const session = await open({ total_training_steps: 3 });
    const { path, metrics } = await train(session);
    const before = readFileSync(join(path, "metrics.jsonl"), "utf8");
    const again = await open({ val_only: true });
    again.config.trainer.default_local_dir = session.config.trainer.default_local_dir;
    const only = await train(again);
    expect(only.metrics["training/global_step"]).toBe(3);
    expect(only.metrics["val-core/test/reward/mean@1"]).toBe(metrics["val-core/test/reward/mean@1"]);
    expect(only.tracker.seen).toEqual([]);
    expect(readFileSync(join(path, "metrics.jsonl"), "utf8")).toBe(before);
    expect(existsSync(join(path, "validation", "val_only-3.jsonl"))).toBe(true);
  });
});

describe("where a run writes", () => {
  it("data folders may lie elsewhere; without the file logger there is no metrics.jsonl", async () => {
    const session = await open({ total_training_steps: 1, logger: ["console"] });
    session.config.trainer.rollout_data_dir = join(session.folder, "r");
    session.config.trainer.validation_data_dir = join(session.folder, "v");
    const { path } = await train(session);
    expect(readdirSync(join(session.folder, "r"))).toEqual(["1.jsonl"]);
    expect(readdirSync(join(session.folder, "v")).sort()).toEqual(["0.jsonl", "1.jsonl"]);
    for (const name of ["metrics.jsonl", "rollouts", "validation"]) expect(existsSync(join(path, name))).toBe(false);
  });

  it("profile_steps leaves V8 profiles of those steps", async () => {
    const { path } = await train(await open({ total_training_steps: 2, profile_steps: [2] }));
    expect(readdirSync(join(path, "profiles"))).toEqual(["2.cpuprofile"]);
    const profile = JSON.parse(readFileSync(join(path, "profiles", "2.cpuprofile"), "utf8")) as { nodes: unknown[] };
    expect(profile.nodes.length).toBeGreaterThan(1);
  });
});

describe("trackers", () => {
  it("that fail are one warning, and training is the same", async () => {
    const { said, path } = await train(await open({ total_training_steps: 2 }), new TestTracker(true));
    expect(said[0]).toMatch(/tracker test fails, training goes on without it: no such server/);
    expect(readMetrics(path)).toHaveLength(3);
  });

  it("learn how the run ended", async () => {
    const failing = await open({ total_training_steps: 2 });
    const tracker = new TestTracker();
    const broken = { ...failing, rollout: { ...failing.rollout, reward: () => Number.NaN } };
    await expect(train(broken, tracker)).rejects.toThrow(/step 1: every conversation failed[\s\S]*received NaN/);
    expect(tracker.ends).toEqual(["failed"]);
    const controller = new AbortController();
    const session = await open({ total_training_steps: 10_000 }, controller.signal);
    const interrupted = new TestTracker();
    setTimeout(() => controller.abort(new Error("enough")), 300);
    await expect(train(session, interrupted)).rejects.toThrow();
    expect(interrupted.ends).toEqual(["interrupted"]);
    expect(existsSync(join(session.folder, "cria", "default.run.lock"))).toBe(false);
  });
});
