import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import { tool } from "@cria/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { TrainingBus } from "../cluster/training-bus.js";
import { openReplay } from "../replay/open-replay.js";
import { sampleStep } from "../step/sample-step.js";
import type { StepMetrics } from "../step-metrics.js";
import { defineTask } from "../task/task.js";
import { openTinyTraining, writeTinyRun } from "../testing/tiny-training.js";
import { Stopwatch } from "../timing/stopwatch.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";
import { openTraining } from "./training.js";

const folder = mkdtempSync(join(tmpdir(), "cria-guided-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const calculator = tool({
  name: "calculator",
  description: "Computes.",
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => String(expression.split("+").reduce((sum, part) => sum + Number(part), 0)),
});

const options: TrainOptions = {
  model: fileURLToPath(new URL("../../../../models/cria-tiny.gguf", import.meta.url)),
  task: defineTask({
    rows: Array.from({ length: 12 }, (_, i) => ({
      question: `There are ${i + 20} marbles in a box and 7 marbles in a bag. How many marbles in total?`,
    })),
    tools: [calculator],
    reward: ({ answer }) => answer.length % 7,
    maxTurns: 3,
    maxPromptLength: 120,
    maxResponseLength: 128,
  }),
  n: 4,
  steps: 3,
  batchSize: 4,
  learningRate: 5e-3,
  config: { data: { shuffle: false } },
  save: { every: 1, keep: 10 },
  threads: 1,
  folder,
};

interface Held {
  folder: string;
  steps: StepMetrics[];
  sha: string;
  lines: (step: number) => Promise<DumpLine[]>;
}

async function hold(name: string, more: TrainOptions = {}): Promise<Held> {
  const steps: StepMetrics[] = [];
  const run = train({ ...options, name, ...more });
  for await (const { metrics } of run) steps.push(metrics);
  const { folder: made, adapter: weights } = await run;
  return {
    folder: made,
    steps,
    sha: createHash("sha256").update(readFileSync(weights!)).digest("hex"),
    lines: async (step) => {
      const lines: DumpLine[] = [];
      for await (const line of readDump(join(made, "rollouts", `${step}.jsonl`))) lines.push(line);
      return lines;
    },
  };
}

const said = ({ turns }: DumpLine) => turns.filter(({ role }) => role === "assistant");
const isGuided = (line: DumpLine) => said(line).some(({ sampled_by }) => sampled_by === "teacher");
const isMixed = (line: DumpLine) => isGuided(line) && said(line).some(({ sampled_by }) => sampled_by === undefined);

let adapter: string;
let mixed: Held;
/** The teacher samples half of the turns of step 1, a quarter of those of step 2, and none of step 3. */
const guided = (): TrainOptions => ({ teacher: { adapter, guidedShare: 0.5, guidedSteps: 2 } });

beforeAll(async () => {
  const run = train({ ...options, steps: 1, learningRate: 5e-2, name: "teacher" });
  adapter = (await run).adapter!;
  mixed = await hold("mixed", guided());
});

describe("a teacher that samples turns", () => {
  it("with share 1 holds the conversations that it holds alone, bit for bit, and nothing is learned from them", async () => {
    const own = await hold("own", { steps: 1, lora: { path: adapter } });
    const led = await hold("led", { steps: 1, teacher: { adapter, guidedShare: 1 } });
    const plain = await hold("plain-1", { steps: 1 });
    const ids = async (held: Held) => (await held.lines(1)).map(({ token_ids }) => token_ids);
    expect(await ids(led)).toEqual(await ids(own));
    expect(await ids(led)).not.toEqual(await ids(plain));
    for (const line of await led.lines(1)) {
      expect(said(line).length).toBeGreaterThan(0);
      expect(said(line).every(({ sampled_by }) => sampled_by === "teacher")).toBe(true);
      expect(new Set([...line.response_mask, ...line.rollout_logprobs])).toEqual(new Set([0]));
    }
    expect(led.steps[0]).toMatchObject({
      "distillation/guided/share": 1,
      "distillation/guided/turns": 1,
      "distillation/guided/left_out": 16,
      "rollout/kept": 0,
      "rollout/failed": 0,
    });
    expect(led.steps[0]).not.toHaveProperty("actor/grad_norm");
  });

  it("takes turns with the policy, which learns from its own alone", async () => {
    const lines = await mixed.lines(1);
    expect(lines.filter(isMixed).length).toBeGreaterThan(0);
    for (const line of lines)
      for (const { start, end, sampled_by } of said(line)) {
        const mask = line.response_mask.slice(start, end);
        expect(new Set(mask)).toEqual(new Set([sampled_by === "teacher" ? 0 : 1]));
      }
    const turns = lines.flatMap(said);
    expect(mixed.steps[0]!["distillation/guided/turns"]).toBe(
      turns.filter(({ sampled_by }) => sampled_by === "teacher").length / turns.length,
    );
    expect(mixed.steps[0]!["actor/grad_norm"]).toBeGreaterThan(0);
    // The policy's turns are evaluated as they were sampled, behind the teacher's.
    expect(mixed.steps[0]!["training/rollout_probs_diff_max"]).toBeLessThan(1e-3);
  });

  it("takes fewer turns from step to step, and at last none", async () => {
    expect(mixed.steps.map((step) => step["distillation/guided/share"])).toEqual([0.5, 0.25, 0]);
    expect((await mixed.lines(2)).some(isGuided)).toBe(true);
    expect((await mixed.lines(3)).some(isGuided)).toBe(false);
    expect(mixed.steps[2]!["distillation/guided/turns"]).toBe(0);
  });

  it("gives the same bits by the same seed, also where the run is resumed", async () => {
    const again = await hold("again", guided());
    expect(again.sha).toBe(mixed.sha);
    const resume = join(mixed.folder, "checkpoints", "global_step_1");
    const resumed = await hold("resumed", { ...guided(), resume });
    expect(resumed.steps).toHaveLength(2);
    expect(resumed.sha).toBe(mixed.sha);
    const tokens = async (held: Held) =>
      (await held.lines(2)).map(({ token_ids, rollout_logprobs, turns }) => ({ token_ids, rollout_logprobs, turns }));
    expect(await tokens(resumed)).toEqual(await tokens(mixed));
  });

  it("with share 0 leaves the run as it is without this", async () => {
    const plain = await hold("plain", { teacher: { adapter } });
    const off = await hold("off", { teacher: { adapter, guidedShare: 0, guidedSteps: 7 } });
    expect(off.sha).toBe(plain.sha);
    expect(off.sha).not.toBe(mixed.sha);
    expect(Object.keys(off.steps[0]!).filter((name) => name.includes("guided"))).toEqual([]);
  });

  it("takes turns of steps that are sampled ahead, with the bits of the lag", async () => {
    const [first, second] = [
      await hold("ahead-1", { ...guided(), lag: 1 }),
      await hold("ahead-2", { ...guided(), lag: 1 }),
    ];
    expect((await first.lines(2)).some(isGuided)).toBe(true);
    expect(second.sha).toBe(first.sha);
    expect(first.sha).not.toBe(mixed.sha);
  });
});

describe("a replay of a run with a teacher", () => {
  const dropCheckpoints = (held: Held) => rmSync(join(held.folder, "checkpoints"), { recursive: true });

  it("trains steps again with the teacher's term", async () => {
    const taught = await hold("taught", { steps: 2, teacher: { adapter } });
    dropCheckpoints(taught);
    const replay = await openReplay(taught.folder, { train: options });
    const results = await replay.replay(await taught.lines(2));
    expect(results.map(({ difference }) => difference)).toEqual(results.map(() => null));
    expect(replay.trainedSteps).toBe(1);
    await replay.close();
  });

  it("holds the teacher's turns again to equal bits, and changes them", async () => {
    dropCheckpoints(mixed);
    const replay = await openReplay(mixed.folder, { train: options });
    for (const step of [1, 2, 3]) {
      const results = await replay.replay(await mixed.lines(step));
      expect(results.map(({ difference }) => difference)).toEqual(results.map(() => null));
    }
    expect(replay.trainedSteps).toBe(2);
    const line = (await mixed.lines(1)).find(isMixed)!;
    const { start } = said(line).find(({ sampled_by }) => sampled_by === "teacher")!;
    const { line: forked } = await replay.fork(line, start, {
      replacement: line.token_ids[start]! + 1,
      liveTools: true,
    });
    expect(forked.token_ids[start]).toBe(line.token_ids[start]! + 1);
    expect(forked.response_mask[start]).toBe(0);
    await replay.close();
  });
});

const models = new TinyModels();
afterAll(() => models.cleanUp());

describe("greedy baselines beside a teacher's turns", () => {
  it("are the policy's alone", async () => {
    const model_path = await models.write({ seed: 11, layers: 3, embeddingScale: 0.3 });
    const sample = async (share: number) => {
      const training = await openTinyTraining(models, {
        algorithm: { adv_estimator: "remax" },
        distillation: { enabled: true, guided: { share }, teacher_models: { t: { model_path } } },
      });
      const { conversations, greedyRewards } = await sampleStep(
        training,
        { rows: training.trainRows, step: 1 },
        new Stopwatch(),
      );
      await training.dispose();
      return { ids: conversations.map(({ tokenIds }) => [...tokenIds]), greedyRewards };
    };
    const [plain, led] = [await sample(0), await sample(1)];
    expect(led.greedyRewards).toEqual(plain.greedyRewards);
    expect([...led.greedyRewards!.values()].some((reward) => reward > 0)).toBe(true);
    expect(led.ids).not.toEqual(plain.ids);
  });
});

describe("distillation.guided.share", () => {
  const open = async (teacher: object | null, more: object = {}, bus?: TrainingBus) => {
    const teacher_models = teacher === null ? {} : { t: teacher };
    const distillation = { enabled: true, guided: { share: 0.5 }, teacher_models };
    const made = await writeTinyRun(models, { distillation, ...more });
    const training = await openTraining(made.config, made.folder, bus ? { bus } : {});
    await training.dispose();
  };
  const model = async () => ({ model_path: await models.write({ seed: 11, layers: 3 }) });

  it("is accepted with a model of the policy's vocabulary", async () => {
    await open(await model());
  });

  const v1 = { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 1 } };
  it.each<[string, () => Promise<unknown>, string]>([
    ["the policy's own model, by no entry", () => open(null), "distillation.teacher_models"],
    ["the policy's own model, by an entry", () => open({}), "distillation.teacher_models.t.model_path"],
    [
      "a hint",
      async () => open({ ...(await model()), hint_key: "ground_truth" }),
      "distillation.teacher_models.t.hint_key",
    ],
    [
      "corrections",
      async () => open({ ...(await model()), correction_key: "fix" }),
      "distillation.teacher_models.t.correction_key",
    ],
    [
      "the newest policy for each turn",
      async () => open(await model(), { rollout: { partial_rollout: "switch" }, trainer: { v1 } }),
      "actor_rollout_ref.rollout.partial_rollout",
    ],
    ["workers of a bus", async () => open(await model(), {}, {} as TrainingBus), "bus"],
  ])("is refused with %s, by both keys", async (_, run, key) => {
    await expect(run()).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "distillation.guided.share",
      expected: expect.stringContaining(key),
    });
  });

  it("is refused with an agent, which asks the policy itself", async () => {
    const agent = async () => 1;
    const run = train({ ...options, task: undefined, rows: [{ question: "a" }], agent, name: "agent", ...guided() });
    await expect(run).rejects.toMatchObject({ code: "config/bad-value", subject: "train: teacher.guidedShare" });
  });
});
