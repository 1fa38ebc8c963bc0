import { TinyModels } from "@cria/engine/testing";
import { Semaphore } from "@cria/rollout";
import { tool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { openFakeTraining } from "../testing/fake-training.js";
import { ConversationStates } from "../timing/conversation-states.js";
import { Stopwatch } from "../timing/stopwatch.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const add = (parts: Record<string, number>) => Object.values(parts).reduce((sum, seconds) => sum + seconds, 0);

it("a step says how its time divides, and the parts add up to it", async () => {
  let now = 0;
  const seconds = { generate: 1, score: 3, train: 4, values: 0, trainCritic: 0 };
  let said = 0;
  const training = await openFakeTraining(models, {
    prompts: ["a"],
    rollout: { n: 2, multi_turn: { enable: true } },
    actor: { old_log_prob: "separate" },
    reward: "return text.length % 7;",
    reply: () => {
      said++;
      return said % 2 === 1 ? '<tool_call>{"name":"wait","arguments":{}}</tool_call>' : "x".repeat(said);
    },
    onCall: (name) => {
      now += 1000 * seconds[name];
    },
  });
  (training.environment.tools as Map<string, unknown>).set(
    "wait",
    tool({
      name: "wait",
      description: "Waits.",
      inputSchema: { type: "object", properties: {} },
      execute: async () => {
        now += 5000;
        return "done";
      },
    }),
  );
  const { metrics, trajectories } = await runTrainingStep(training, {
    rows: training.trainRows,
    step: 1,
    epoch: 0,
    now: () => now,
    // One after the other, so that a tool's time is nobody else's.
    slots: new Semaphore(1),
  });
  expect(trajectories.map((t) => t.metrics.tool_calls)).toEqual([1, 1]);
  const { calls } = training;
  expect(calls.score.length).toBeGreaterThan(0);
  expect(calls.train.length).toBeGreaterThan(0);
  const parts = Object.fromEntries(
    Object.entries(metrics).flatMap(([name, value]) =>
      name.startsWith("timing_s/wall/") ? [[name.slice("timing_s/wall/".length), value]] : [],
    ),
  );
  expect(parts).toEqual({
    decoding: 4,
    waiting_for_tools: 10,
    waiting_for_groups: 0,
    scoring: 3 * calls.score.length,
    training: 4 * calls.train.length,
    other: 0,
  });
  expect(add(parts)).toBeCloseTo(metrics["timing_s/step"]!, 9);
  await training.dispose();
});

describe("a step that waits for its conversations", () => {
  /** A stopwatch of step 1, whose clock a test turns. */
  function open() {
    const clock = { now: 0 };
    const conversations = new ConversationStates();
    const stopwatch = new Stopwatch({
      now: () => clock.now,
      conversations: { onChange: conversations.onChange, activity: () => conversations.activity(1) },
    });
    const pass = (seconds: number) => {
      clock.now += 1000 * seconds;
    };
    return { pass, conversations, stopwatch };
  }

  it("waits for groups while later steps generate, and for tools while no step does", async () => {
    const { pass, conversations, stopwatch } = open();
    const [own, later] = [conversations.watch(1), conversations.watch(2)];
    own("pending", null);
    later("pending", null);
    pass(100);
    await stopwatch.time("gen", async () => {
      later("running", "pending");
      // Another step holds the slots.
      pass(1);
      own("running", "pending");
      pass(2);
      own("tool_calling", "running");
      pass(4);
      later("tool_calling", "running");
      pass(8);
      own("running", "tool_calling");
      pass(16);
      own("completed", "running");
      later("running", "tool_calling");
    });
    pass(32);
    later("completed", "running");
    const seconds = stopwatch.seconds();
    const parts = stopwatch.divideStep(seconds);
    expect(parts).toEqual({
      decoding: 18,
      waiting_for_tools: 8,
      waiting_for_groups: 5,
      scoring: 0,
      training: 0,
      other: 132,
    });
    expect(add(parts)).toBe(seconds.step);
  });

  it("decodes while its prompts are evaluated, and waits for groups that are held elsewhere", async () => {
    const { pass, conversations, stopwatch } = open();
    await stopwatch.time("gen", async () => {
      pass(1);
      conversations.watch(1)("pending", null);
      pass(2);
    });
    expect(stopwatch.divideStep(stopwatch.seconds())).toMatchObject({ decoding: 2, waiting_for_groups: 1, other: 0 });
  });
});
