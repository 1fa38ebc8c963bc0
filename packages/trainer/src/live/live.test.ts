import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeEngine } from "@cria/core/testing";
import { TinyModels } from "@cria/engine/testing";
import type { LiveState } from "@cria/records";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { runTraining } from "../run/run-training.js";
import { openTinyTraining } from "../testing/tiny-training.js";
import { formatLiveState, readLiveState } from "./live-state.js";
import { LiveTracker } from "./live-tracker.js";
import { LiveWriter } from "./live-writer.js";

const models = new TinyModels();
const work = mkdtempSync(join(tmpdir(), "cria-live-"));
afterAll(async () => {
  rmSync(work, { recursive: true, force: true });
  await models.cleanUp();
});
afterEach(() => void vi.useRealTimers());

/** A tracker whose clock a test turns. */
function makeTracker() {
  const clock = { now: 1_000_000 };
  const tracker = new LiveTracker(new FakeEngine({ reply: () => "" }), () => clock.now);
  tracker.begin(0, 4);
  const pass = (seconds: number) => {
    clock.now += 1000 * seconds;
  };
  return { tracker, pass };
}

describe("the tracker", () => {
  it("counts conversations by their state, and the seconds in which all wait for tools", () => {
    const { tracker, pass } = makeTracker();
    tracker.startStep(1);
    const told = tracker.conversations.watch(1);
    for (let i = 0; i < 3; i++) told("pending", null);
    told("running", "pending");
    told("running", "pending");
    pass(2);
    told("tool_calling", "running");
    expect(tracker.state().conversations).toEqual({ done: 0, generating: 1, waitingForTools: 1, total: 3 });
    pass(3);
    told("completed", "running");
    pass(5);
    told("running", "tool_calling");
    pass(1);
    told("failed", "running");
    expect(tracker.state()).toMatchObject({
      step: 1,
      total: 4,
      conversations: { done: 2, generating: 0, waitingForTools: 0, total: 3 },
      seconds: { decoding: 6, waitingForTools: 5, waitingForGroups: 0 },
    });
    tracker.conversations.forget((step) => step < 2);
    expect(tracker.state().conversations.total).toBe(0);
  });

  it("adds seconds up by phase, those of an earlier process too, and knows when the last step will be done", () => {
    const { tracker, pass } = makeTracker();
    tracker.restore([
      { "timing_s/wall/decoding": 7, "timing_s/gen": 7, "timing_s/wall/training": 2, "timing_s/testing": 1 },
    ]);
    pass(4);
    expect(tracker.state()).toMatchObject({ phase: "loading", eta: null, seconds: { other: 4 } });
    tracker.startStep(1);
    pass(3);
    tracker.onWork("old_log_prob");
    pass(1);
    tracker.onWork("update_actor");
    pass(2);
    tracker.enter("validation");
    pass(4);
    tracker.endStep();
    expect(tracker.state()).toMatchObject({
      phase: "validation",
      seconds: { decoding: 7, waitingForGroups: 3, scoring: 1, training: 4, validation: 5, other: 4 },
      eta: 30,
    });
  });

  it("says how many tokens were sampled a second, over the last five", () => {
    const { tracker, pass } = makeTracker();
    tracker.state();
    pass(2);
    tracker.onTrajectory({ metrics: { decode_tokens: 100 } });
    expect(tracker.state().tokensPerSecond).toBe(50);
    pass(10);
    expect(tracker.state().tokensPerSecond).toBe(0);
  });
});

const state: LiveState = {
  at: 5,
  process: process.pid,
  step: 2,
  total: 9,
  phase: "rollout",
  conversations: { done: 1, generating: 2, waitingForTools: 3, total: 6 },
  tokensPerSecond: 12.5,
  seconds: {
    decoding: 1,
    waitingForTools: 0.5,
    waitingForGroups: 0.25,
    scoring: 2,
    training: 3,
    validation: 4,
    other: 5,
  },
  staleness: 1,
  eta: null,
  cluster: {
    bus: "nats://host:4222",
    coordinator: "desk/4711",
    term: 2,
    class: "5f0e",
    policy: { version: 3, bytes: 1000, seconds: 0.1 },
    workers: [
      {
        id: "rack-1",
        host: "rack",
        class: "5f0e",
        state: "ready",
        reason: null,
        slots: { rollout: 4, score: 1, gradient: 1 },
        doing: { rollout: 3, score: 0, gradient: 0 },
        done: { rollout: 10, score: 2, gradient: 5 },
        failed: 1,
        lastFailure: "score: no memory",
        oldest: 3,
        declined: 0,
        rate: 12.5,
        audits: { passed: 1, failed: 0 },
      },
    ],
    here: { rollout: 2, score: 1, gradient: 3 },
    jobs: { outstanding: 4, waiting: 0, redelivered: 1, abandoned: 0, conflicts: 0 },
    traffic: { policy: 2000, gradients: 5000, jobs: 100 },
  },
};

describe("live.json", () => {
  it("has snake_case and a version, and is read as it was written", async () => {
    const text = formatLiveState(state);
    expect(JSON.parse(text)).toMatchObject({
      format_version: 2,
      conversations: { waiting_for_tools: 3 },
      tokens_per_second: 12.5,
      seconds: { waiting_for_tools: 0.5, waiting_for_groups: 0.25 },
    });
    writeFileSync(join(work, "live.json"), text);
    expect(await readLiveState(work)).toEqual(state);
  });

  it("is null if it is missing, damaged, of another version, or of a process that is gone", async () => {
    const folder = join(work, "other");
    mkdirSync(folder);
    expect(await readLiveState(folder)).toBeNull();
    for (const text of [
      "{",
      "{}",
      formatLiveState(state).replace(":2,", ":1,"),
      formatLiveState({ ...state, process: 2 ** 30 }),
    ]) {
      writeFileSync(join(folder, "live.json"), text);
      expect(await readLiveState(folder), text).toBeNull();
    }
  });

  it("is written at once and every second, and removed at the end; a failed write is dropped", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const folder = join(work, "written");
    mkdirSync(folder);
    let step = 0;
    const writer = new LiveWriter(folder, { state: () => ({ ...state, step: ++step }) });
    const wait = async (expected: number) =>
      vi.waitFor(async () => expect((await readLiveState(folder))?.step).toBe(expected));
    await wait(1);
    vi.advanceTimersByTime(1000);
    await wait(2);
    await writer.close();
    expect(readdirSync(folder)).toEqual([]);
    const lost = new LiveWriter(join(work, "missing"), { state: () => state });
    const broken = new LiveWriter(folder, {
      state: () => {
        throw new Error("broken");
      },
    });
    await lost.close();
    await broken.close();
    expect(existsSync(join(work, "missing"))).toBe(false);
  });
});

describe("a training", () => {
  it("reports its steps and conversations while it runs, and leaves nothing behind", async () => {
    const training = await openTinyTraining(models, { trainer: { total_training_steps: 2 } });
    const seen: (LiveState | null)[] = [];
    const { path } = await runTraining(training, {
      configFolder: training.folder,
      afterStep: async () => {
        const folder = join(training.config.trainer.default_local_dir, "cria", "default");
        seen.push(
          await vi.waitFor(async () => {
            const live = await readLiveState(folder);
            expect(live?.step).toBe(seen.length + 1);
            return live;
          }, 5000),
        );
      },
    });
    expect(seen.map((live) => live?.conversations)).toEqual(
      [1, 2].map(() => ({ done: 12, generating: 0, waitingForTools: 0, total: 12 })),
    );
    expect(seen[1]!.seconds.training).toBeGreaterThan(0);
    expect(existsSync(join(path, "live.json"))).toBe(false);
  });

  it("without a logger of files reports nothing, and a failed one leaves nothing", async () => {
    const quiet = await openTinyTraining(models, { trainer: { total_training_steps: 1, logger: ["console"] } });
    let files: string[] = [];
    const { path } = await runTraining(quiet, {
      configFolder: quiet.folder,
      afterStep: async () => {
        files = readdirSync(join(quiet.config.trainer.default_local_dir, "cria", "default"));
      },
    });
    expect(files.length).toBeGreaterThan(0);
    expect(files).not.toContain("live.json");
    expect(readFileSync(join(path, "config.json"), "utf8")).toContain("console");
    const failing = await openTinyTraining(models, { trainer: { total_training_steps: 1 } });
    const broken = async () => {
      throw new Error("broken");
    };
    await expect(runTraining(failing, { configFolder: failing.folder, afterStep: broken })).rejects.toThrow("broken");
    const left = readdirSync(join(failing.config.trainer.default_local_dir, "cria", "default"));
    expect(left.filter((name) => name.startsWith("live.json"))).toEqual([]);
  });
});
