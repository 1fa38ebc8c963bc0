import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import type { DumpLine } from "@cria/records";
import { afterAll, describe, expect, it, vi } from "vitest";
import { RunFolder } from "../checkpoints/run-folder.js";
import { diagnoseRun } from "../diagnose/diagnose-run.js";
import type { Finding } from "../diagnose/finding.js";
import { openTinyTraining, type TinyTraining } from "../testing/tiny-training.js";
import type { TrackedStep, Tracker } from "../trackers/tracker.js";
import { runTraining } from "./run-training.js";

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
  openTinyTraining(models, { data: { val_files: "rows.jsonl" }, trainer, signal });

async function train(training: TinyTraining, tracker = new TestTracker()) {
  const said: string[] = [];
  const told: Finding[] = [];
  const summary = await runTraining(training, {
    configFolder: training.folder,
    report: (event) => {
      if (event.type === "notice") said.push(event.text);
      if (event.type === "problem") told.push(event.problem);
    },
    trackers: [tracker],
  });
  return { ...summary, said, told, tracker };
}

const readLines = (file: string) =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const readMetrics = (path: string) => readLines(join(path, "metrics.jsonl")) as Record<string, number>[];

describe("validation", () => {
  it("before training, every test_freq, and at the end; trackers get the file's values", async () => {
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
    const training = await open({ total_training_steps: 1, val_before_train: false });
    const { path } = await train(training);
    expect(readdirSync(join(path, "validation"))).toEqual(["1.jsonl"]);
    const again = await open({ total_training_steps: 2 });
    again.config.trainer.default_local_dir = training.config.trainer.default_local_dir;
    again.config.actor_rollout_ref.model.path = training.config.actor_rollout_ref.model.path;
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
    const training = await open({ total_training_steps: 3 });
    const { path, metrics } = await train(training);
    const before = readFileSync(join(path, "metrics.jsonl"), "utf8");
    const again = await open({ val_only: true });
    again.config.trainer.default_local_dir = training.config.trainer.default_local_dir;
    const only = await train(again);
    expect(only.metrics["training/global_step"]).toBe(3);
    expect(only.metrics["val-core/test/reward/mean@1"]).toBe(metrics["val-core/test/reward/mean@1"]);
    expect(only.tracker.seen).toEqual([]);
    expect(readFileSync(join(path, "metrics.jsonl"), "utf8")).toBe(before);
    expect(existsSync(join(path, "validation", "val_only-3.jsonl"))).toBe(true);
  });
});

describe("the end of a run", () => {
  const again = async (first: TinyTraining, trainer: Record<string, unknown>) => {
    const training = await open(trainer);
    training.config.trainer.default_local_dir = first.config.trainer.default_local_dir;
    training.config.actor_rollout_ref.model.path = first.config.actor_rollout_ref.model.path;
    return training;
  };

  it("says how good the policy was before and after, of the whole run when it was resumed", async () => {
    const training = await open({ total_training_steps: 2 });
    const { progress, tracker } = await train(training);
    const success = (index: number) => tracker.seen[index]!.metrics["val-core/test/reward/mean@1"]!;
    const before = { step: 0, success: expect.closeTo(success(0), 12) };
    expect(progress).toEqual({
      measured: "held_out",
      before,
      after: { step: 2, success: expect.closeTo(success(2), 12) },
    });
    const resumed = await train(await again(training, { total_training_steps: 3 }));
    expect(resumed.progress!.before).toEqual(before);
    expect(resumed.progress!.after.step).toBe(3);
  });

  it("measures by the training without held-out rows, and not at all with one step", async () => {
    const alone = (steps: number) => openTinyTraining(models, { trainer: { total_training_steps: steps } });
    const { progress, tracker } = await train(await alone(3));
    const [, first, , last] = tracker.seen.map(({ step, metrics }) => ({
      step,
      success: metrics["reward/score/mean"],
    }));
    expect(progress).toEqual({ measured: "training", before: first, after: last });
    expect((await train(await alone(1))).progress).toBeNull();
  });

  it("says once why a run does not learn, as soon as that is seen, and at its end", async () => {
    const hopeless = (steps: number) =>
      openTinyTraining(models, { reward: "return 0;", trainer: { total_training_steps: steps } });
    const { told, problems, path } = await train(await hopeless(8));
    // A random model never ends its turn, and cannot learn to without a reward either.
    expect(told).toMatchObject([
      { rule: "truncated", sentence: expect.stringMatching(/^In steps 1 to 5 no/), evidence: [{ dump: "5" }] },
    ]);
    expect(problems).toMatchObject([
      { rule: "truncated", evidence: [{ dump: "8", filter: "truncated" }] },
      { rule: "no_reward", evidence: [{ dump: "8", filter: null }] },
    ]);
    // The step named by the problem has dumped conversations.
    expect(existsSync(join(path, "rollouts", "5.jsonl"))).toBe(true);
    const short = await train(await hopeless(3));
    expect([short.told, short.problems.map(({ rule }) => rule)]).toEqual([[], ["truncated", "no_reward"]]);
    const healthy = await train(await openTinyTraining(models, { trainer: { total_training_steps: 8 } }));
    expect([healthy.told, healthy.problems]).toEqual([[], []]);
  });

  it("keeps past problems, with their steps, over an interruption too", async () => {
    const training = await openTinyTraining(models, { trainer: { total_training_steps: 6, save_freq: 1 } });
    const poor = { ...training, environment: { ...training.environment, reward: () => 0 } };
    const { path } = await train(poor);
    const better = await train(await again(training, { total_training_steps: 12 }));
    const held = { rule: "no_reward", holds: false, steps: [[5, 6]] };
    expect(better.problems).toContainEqual(expect.objectContaining(held));
    expect(await diagnoseRun(path)).toEqual(better.problems);
  });

  it("a resumed run that had learned everything learns nothing, which is not a problem", async () => {
    const training = await open({ total_training_steps: 3 });
    const { path } = await train(training);
    const file = join(path, "metrics.jsonl");
    const poor = readMetrics(path).map((m) => JSON.stringify({ ...m, "critic/score/mean": 0.1 }));
    writeFileSync(file, poor.map((line) => `${line}\n`).join(""));
    const more = await again(training, { total_training_steps: 10 });
    const solved = { ...more, environment: { ...more.environment, reward: () => 1 } };
    expect((await train(solved)).problems).toEqual([]);
  });
});

describe("the folders of a run", () => {
  it("rollout_data_detail: full has the step's values of each token, and the times of turns", async () => {
    const training = await open({ total_training_steps: 1, rollout_data_detail: "full" });
    const { path } = await runTraining(training);
    const lines = readLines(join(path, "rollouts", "1.jsonl")) as unknown as DumpLine[];
    const learned = lines.filter(({ advantage }) => advantage !== null && advantage !== 0);
    expect(learned.length).toBeGreaterThan(0);
    for (const { token_ids, response_mask, advantages, old_logprobs, entropy, ref_logprobs, ...line } of learned) {
      expect(advantages).toHaveLength(token_ids.length);
      for (const values of [advantages, old_logprobs, entropy])
        expect(values!.map((value) => Number(value !== 0))).toEqual(response_mask);
      expect(advantages!.at(-1)).toBeCloseTo(line.advantage!, 5);
      // The same model computed both logprobs.
      line.rollout_logprobs.forEach((value, t) => void expect(old_logprobs![t]).toBeCloseTo(value, 2));
      expect(ref_logprobs).toBeNull();
      expect(line.turns[0]!.started_at).toBeGreaterThan(0);
    }
    const [validated] = readLines(join(path, "validation", "1.jsonl")) as unknown as DumpLine[];
    expect(validated).not.toHaveProperty("old_logprobs");
    expect(validated!.turns[0]!.ended_at).toBeGreaterThan(0);
  });

  it("a folder of the caller's has metrics and trajectories of each step and the adapter, but no checkpoints", async () => {
    const training = await open({ total_training_steps: 3, save_freq: 2, val_before_train: false });
    const folder = await RunFolder.create(join(training.folder, "out"));
    const { path, steps } = await runTraining(training, { folder });
    expect(readMetrics(path)).toEqual(JSON.parse(JSON.stringify(steps)));
    expect(steps.map((m) => m["training/global_step"])).toEqual([1, 2, 3]);
    expect(steps.map((m) => "timing_s/save_checkpoint" in m)).toEqual([false, true, true]);
    expect(steps.map((m) => "val-core/test/reward/mean@1" in m)).toEqual([false, false, true]);
    expect(readdirSync(path).sort()).toEqual([
      "adapter.gguf",
      "end.json",
      "metrics.jsonl",
      "rollouts",
      "run.json",
      "validation",
    ]);
    const trajectories = readLines(folder.file("rollouts", "3.jsonl"));
    expect(trajectories).toHaveLength(12);
    for (const t of trajectories) {
      const lengths = ["token_ids", "response_mask", "rollout_logprobs"].map((name) => (t[name] as unknown[]).length);
      expect(new Set(lengths).size).toBe(1);
    }
    // The file has the trained adapter: a new engine with it samples the same tokens as this one.
    const options = { path: training.config.actor_rollout_ref.model.path, contextSize: 56, maxSequences: 16 };
    const again = await models.load({}, { ...options, lora: { path: folder.file("adapter.gguf") } });
    const plain = await models.load({}, { ...options, lora: { rank: 4, alpha: 8 } });
    const tokenIds = trajectories[0]!.token_ids as number[];
    const score = async (engine: typeof training.policy.engine) => [
      ...(await engine.score([{ tokenIds }]))[0]!.logprobs,
    ];
    expect(await score(again)).toEqual(await score(training.policy.engine));
    expect(await score(plain)).not.toEqual(await score(training.policy.engine));
  });

  it("data folders may lie elsewhere; without the file logger there is no metrics.jsonl", async () => {
    const training = await open({ total_training_steps: 1, logger: ["console"] });
    training.config.trainer.rollout_data_dir = join(training.folder, "r");
    training.config.trainer.validation_data_dir = join(training.folder, "v");
    const { path } = await train(training);
    expect(readdirSync(join(training.folder, "r"))).toEqual(["1.jsonl"]);
    expect(readdirSync(join(training.folder, "v")).sort()).toEqual(["0.jsonl", "1.jsonl"]);
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
    const broken = { ...failing, environment: { ...failing.environment, reward: () => Number.NaN } };
    await expect(train(broken, tracker)).rejects.toMatchObject({
      code: "rollout/all-failed",
      subject: "step 1",
      received: expect.stringContaining("NaN"),
    });
    expect(tracker.ends).toEqual(["failed"]);
    const controller = new AbortController();
    const training = await open({ total_training_steps: 10_000 }, controller.signal);
    const interrupted = new TestTracker();
    const running = expect(train(training, interrupted)).rejects.toThrow();
    await vi.waitFor(() => expect(interrupted.seen.length).toBeGreaterThan(0));
    controller.abort(new Error("enough"));
    await running;
    expect(interrupted.ends).toEqual(["interrupted"]);
    expect(existsSync(join(training.folder, "cria", "default.run.lock"))).toBe(false);
  });
});
