import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { interaction, type ToolSource, tool } from "@cria/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { RunEvent } from "../events.js";
import { defineTask } from "../task/task.js";
import type { TrackedStep, Tracker } from "../trackers/tracker.js";
import { TrainingInterrupted } from "./steps.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";
import type { TrainStep } from "./train-result.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let model: string;
beforeAll(async () => {
  model = await models.write({ seed: 5, embeddingScale: 0.25 });
});

const limits = { maxPromptLength: 48, maxResponseLength: 8 };
const shareOfAscii = (text: string) => [...text].filter((c) => c < "\x80").length / Math.max(1, text.length);
const rows = ["a", "bb", "ccc"].map((question) => ({ question }));
const task = defineTask({ rows, reward: ({ text }) => shareOfAscii(text), ...limits });
const heldOut = [{ question: "dd" }, { question: "e" }];
const silent = tool({ name: "silent", description: "Says nothing.", inputSchema: z.object({}), execute: () => "" });

let count = 0;
/** A training with steps of a few milliseconds, in its own run folder. */
const options = (more: TrainOptions = {}): TrainOptions => ({
  model,
  task,
  folder: join(models.folder, `runs-${count++}`),
  lora: { rank: 4, alpha: 8 },
  steps: 4,
  batchSize: 3,
  n: 4,
  learningRate: 1e-2,
  seed: 1,
  threads: 1,
  config: { actor_rollout_ref: { rollout: { max_num_seqs: 16 } } },
  ...more,
});

const hash = (file: string | null) => createHash("sha256").update(readFileSync(file!)).digest("hex");
const failureOf = (work: PromiseLike<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );
async function collect(run: AsyncIterable<TrainStep>): Promise<number[]> {
  const steps: number[] = [];
  for await (const { step } of run) steps.push(step);
  return steps;
}

describe("a training under way", () => {
  it("is iterated step by step, also once it is over, and by several", async () => {
    const run = train(options());
    const seen: TrainStep[] = [];
    for await (const step of run) seen.push(step);
    expect(seen.map(({ step, total }) => [step, total])).toEqual([1, 2, 3, 4].map((step) => [step, 4]));
    expect(seen.every(({ reward, heldOut: held }) => reward !== null && held === null)).toBe(true);
    expect(seen[3]!.metrics["training/global_step"]).toBe(4);
    const { adapter, model: whole, before, after, progress, heldOutRows } = await run;
    expect([existsSync(adapter!), whole, heldOutRows]).toEqual([true, null, 0]);
    expect([before, after]).toEqual([seen[0]!.success, seen[3]!.success]);
    expect(progress).toMatchObject({ measured: "training", before: { step: 1 }, after: { step: 4 } });
    expect(await Promise.all([collect(run), collect(run)])).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
  });

  it("stops and saves when its iteration is left; resuming gives the same bits", async () => {
    const given = options();
    const run = train(given);
    for await (const { step } of run) if (step === 2) break;
    const { metrics, folder } = await run;
    const done = metrics["training/global_step"]!;
    expect(done).toBeLessThan(4);
    expect(readdirSync(join(folder, "checkpoints"))).toContain(`global_step_${done}`);
    const resumed = train({ ...given, resume: true });
    expect(await collect(resumed)).toEqual([1, 2, 3, 4].filter((step) => step > done));
    expect(hash((await resumed).adapter)).toBe(hash((await train(options())).adapter));
  });

  it("stop() ends it after the step that it takes, and changes nothing once it is over", async () => {
    const run = train(options({ report: ({ type }) => void (type === "step" && run.stop()) }));
    expect(await collect(run)).toEqual([1]);
    const { adapter } = await run;
    const saved = hash(adapter);
    run.stop();
    expect(hash((await run).adapter)).toBe(saved);
  });

  it("stop() before its first step takes none", async () => {
    const run = train(options());
    run.stop();
    expect(await collect(run)).toEqual([]);
    expect(await run).toMatchObject({ metrics: {}, before: null, after: null, progress: null });
  });

  it("evaluate() validates between steps, for each caller; afterwards it is refused", async () => {
    const run = train(options({ validation: { rows: heldOut } }));
    const [first, second] = await Promise.all([run.evaluate(), run.evaluate()]);
    expect(first!.trajectories.map(({ messages }) => messages[0]!.content)).toEqual(["dd", "e"]);
    expect(second!.success).toBe(first!.success);
    expect((await run).heldOutRows).toBe(2);
    const error = await failureOf(run.evaluate());
    expect(error).toMatchObject({
      code: "config/run-over",
      subject: "evaluate()",
      received: expect.stringContaining("4 steps"),
    });
    const without = train(options());
    expect(await without.evaluate()).toBeNull();
    await without;
  });

  it("evaluate() of a training that fails before a step is refused", async () => {
    const run = train(options({ model: "nowhere.gguf" }));
    const [asked, failed] = await Promise.all([failureOf(run.evaluate()), failureOf(run)]);
    expect(asked).toMatchObject({ code: "config/run-over", received: "one that ended after 0 steps" });
    expect(String(failed)).toContain("nowhere.gguf");
  });

  it("a signal ends it in the middle of a step with a checkpoint, and resume goes on to the same bits", async () => {
    const controller = new AbortController();
    let judged = 0;
    const slow = defineTask({
      rows,
      // Abort at the second of the third step's twelve conversations.
      reward: ({ text }) => {
        if (++judged === 26) controller.abort(new Error("enough"));
        return shareOfAscii(text);
      },
      ...limits,
    });
    const given = options({ task: slow });
    const run = train({ ...given, signal: controller.signal });
    const error = (await failureOf(run)) as TrainingInterrupted;
    expect(error).toBeInstanceOf(TrainingInterrupted);
    expect(error.training).toMatchObject({ step: 2, total: 4, lost: "the rollouts of step 3" });
    expect(existsSync(error.training.checkpoint!)).toBe(true);
    await expect(collect(run)).rejects.toBe(error);
    const { adapter } = await train({ ...given, resume: true });
    expect(hash(adapter)).toBe(hash((await train(options())).adapter));
  });

  it("several at once do not mix", async () => {
    const alone = [];
    for (const seed of [1, 2]) alone.push(hash((await train(options({ seed }))).adapter));
    const runs = [1, 2].map((seed) => train(options({ seed })));
    const steps = await Promise.all(runs.map(collect));
    expect(steps).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
    expect(await Promise.all(runs.map(async (run) => hash((await run).adapter)))).toEqual(alone);
    expect(new Set(alone).size).toBe(2);
  });
});

describe("reports", () => {
  it("report receives warnings and notices of settings before the first step", async () => {
    const events: RunEvent[] = [];
    const report = (event: RunEvent) => void events.push(event);
    const config = {
      actor_rollout_ref: { rollout: { max_model_len: 4000, max_num_seqs: 2 }, actor: { clip_ratio: 0.1 } },
    };
    const lora = { rank: 4, targets: ["attn_q", "attn_qkv"] };
    await train(options({ steps: 1, n: 1, batchSize: 8, lora, config, report }));
    const before = events.slice(
      0,
      events.findIndex(({ type }) => type === "step"),
    );
    const texts = (type: string) =>
      before.flatMap((event) => (event.type === type && "text" in event ? event.text.split(": ")[0] : []));
    expect(texts("warning")).toEqual(["n", "lora.targets", "actor_rollout_ref.rollout.max_model_len", "batchSize"]);
    expect(texts("notice")).toContain("actor_rollout_ref.actor.clip_ratio");
    events.length = 0;
    await train(options({ steps: 1, report }));
    expect(events.filter(({ type }) => type === "warning" || type === "notice")).toEqual([]);
  });

  it("report receives every event in order, and its error ends the training", async () => {
    const events: RunEvent[] = [];
    await train(
      options({ steps: 2, validation: { rows: heldOut, every: 1 }, report: (event) => void events.push(event) }),
    );
    const told = events.flatMap((event) => {
      if (event.type === "step") return [`step ${event.step}`];
      return event.type === "validated" ? [`validated ${event.step}`] : [];
    });
    expect(told).toEqual(["validated 0", "step 1", "validated 1", "step 2", "validated 2"]);
    const broken = new Error("no room on the screen");
    const report = ({ type }: RunEvent) => {
      if (type === "step") throw broken;
    };
    expect(await failureOf(train(options({ report })))).toBe(broken);
  });

  it("trackers of one's own see the steps and how the run ended", async () => {
    const seen: TrackedStep[] = [];
    const ends: string[] = [];
    const tracker: Tracker = {
      name: "mine",
      start: async ({ project, experiment }) => ({ run: `${project}/${experiment}` }),
      log: async (steps) => void seen.push(...steps),
      finish: async (status) => void ends.push(status),
    };
    const { folder } = await train(options({ name: "tracked", trackers: [tracker], steps: 2 }));
    expect(seen.map(({ step }) => step)).toEqual([0, 1, 2]);
    expect(ends).toEqual(["finished"]);
    expect(JSON.parse(readFileSync(join(folder, "trackers.json"), "utf8"))).toEqual({ mine: { run: "cria/tracked" } });
  });
});

describe("a failure", () => {
  it("reaches every await and every iteration", async () => {
    const cases: [string, () => TrainOptions, details: object][] = [
      ["an option", () => options({ n: 0 }), { code: "config/bad-value", subject: "train: n", received: "0" }],
      [
        "a reward",
        () =>
          options({
            task: defineTask({
              rows,
              reward: () => {
                throw new Error("no judge today");
              },
              ...limits,
            }),
          }),
        { code: "rollout/all-failed", received: expect.stringContaining("no judge today") },
      ],
      [
        "a row",
        () => options({ task: defineTask({ rows: [{ ask: "a" }], reward: () => 1 }) }),
        { code: "data/bad-row", subject: "rows[0]" },
      ],
      [
        "rows on disk",
        () => options({ task: defineTask({ rows: "no.jsonl", reward: () => 1 }) }),
        { code: "data/unreadable", subject: expect.stringContaining("no.jsonl") },
      ],
      [
        "held-out rows",
        () => options({ validation: { rows: [{ ask: "a" }] } }),
        { code: "data/bad-row", subject: "validation.rows[0]" },
      ],
      [
        "no reward",
        () => options({ task: defineTask({ rows, ...limits }) }),
        { code: "config/unknown-data-source", subject: expect.stringContaining("task") },
      ],
      [
        "tools in one turn",
        () =>
          options({
            task: defineTask({ rows, reward: () => 1, tools: [silent], ...limits }),
            config: { actor_rollout_ref: { rollout: { multi_turn: { enable: false } } } },
          }),
        { code: "config/bad-value", subject: "tools of the task" },
      ],
    ];
    for (const [name, make, details] of cases) {
      const error = await failureOf(train(make()));
      expect(error, name).toMatchObject(details);
      expect(((await failureOf(collect(train(make())))) as Error).message, name).toBe((error as Error).message);
    }
  });

  it("is an unhandled rejection if nobody awaits it, and none if somebody iterates", async () => {
    const listeners = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    const unhandled: unknown[] = [];
    process.on("unhandledRejection", (error) => unhandled.push(error));
    try {
      await failureOf(collect(train(options({ n: 0 }))));
      await failureOf(train(options({ n: 0 })));
      // The training fails while the loop's body is busy.
      let fail!: () => void;
      const hasFailed = new Promise<void>((resolve) => {
        fail = resolve;
      });
      const report = (event: RunEvent) => {
        if (event.type !== "step" || event.step !== 2) return;
        fail();
        throw new Error("no room on the screen");
      };
      const turns = async () => {
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      };
      const dawdle = async () => {
        for await (const _ of train(options({ report }))) await hasFailed.then(turns);
      };
      expect(String(await failureOf(dawdle()))).toContain("no room on the screen");
      await turns();
      expect(unhandled).toEqual([]);
      train(options({ n: 0 }));
      await expect.poll(() => unhandled).toEqual([expect.any(ConfigError)]);
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const listener of listeners) process.on("unhandledRejection", listener);
    }
  });

  it("opens tools for the run, and closes them when it ends", async () => {
    const ended: string[] = [];
    const source = (name: string): ToolSource => ({
      name: `server of ${name}`,
      open: async () => [
        tool({
          name,
          description: "Does nothing.",
          inputSchema: z.object({}),
          execute: () => "",
          dispose: () => void ended.push(name),
        }),
      ],
    });
    const own = tool({
      name: "own",
      description: "Does nothing.",
      inputSchema: z.object({}),
      execute: () => "",
      dispose: () => void ended.push("own"),
    });
    // Tools and interactions in memory may be reused: their creator disposes of them.
    const user = interaction({ reply: () => ({ shouldTerminate: true }), dispose: () => void ended.push("user") });
    const tooled = (...tools: (ToolSource | typeof own)[]) =>
      defineTask({ ...task.definition, tools, interaction: user });
    await train(options({ steps: 1, task: tooled(source("a"), own) }));
    expect(ended).toEqual(["a"]);
    const error = await failureOf(train(options({ task: tooled(source("b"), source("b")) })));
    expect(error).toMatchObject({ code: "tool/duplicate", subject: 'tool "b"' });
    expect(ended).toEqual(["a", "b", "b"]);
  });
});

describe("options beside a config", () => {
  it("a config's held-out files are made into rows by the task", async () => {
    const file = join(models.folder, "held-out.jsonl");
    const row = { data_source: "x", prompt: [{ role: "user", content: "q" }], reward_model: { ground_truth: "t" } };
    writeFileSync(file, `${JSON.stringify(row)}\n`);
    const seen: unknown[] = [];
    const looking = defineTask({
      rows,
      reward: ({ row: given, text }) => {
        if ("dataSource" in given) seen.push(given.dataSource);
        return shareOfAscii(text);
      },
      ...limits,
    });
    const { heldOutRows } = await train(
      options({
        task: looking,
        steps: 1,
        config: { data: { val_files: ["held-out.jsonl"] } },
        configFolder: models.folder,
      }),
    );
    expect([heldOutRows, seen]).toEqual([1, ["x", "x"]]);
  });

  it("an estimator and a loss of one's own are used, and are the run's alone", async () => {
    let asked = 0;
    const { adapter } = await train(
      options({
        steps: 1,
        advantages: ({ tokenLevelRewards }) => {
          asked++;
          const ones = new Float32Array(tokenLevelRewards.length).fill(1);
          return { advantages: ones, returns: ones, metrics: {} };
        },
      }),
    );
    expect(asked).toBe(1);
    expect(hash(adapter)).not.toBe(hash((await train(options({ steps: 1 }))).adapter));
    const named = train(options({ advantages: "(in memory)" }));
    expect(await failureOf(named)).toMatchObject({ code: "config/unknown-name", received: "(in memory)" });
  });
});
