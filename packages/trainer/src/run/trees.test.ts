import { join } from "node:path";
import type { Trajectory } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import { tool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import type { TrainingBus } from "../cluster/training-bus.js";
import { openReplay } from "../replay/open-replay.js";
import { advantages } from "../step/advantages.js";
import { rollOut } from "../step/roll-out.js";
import { runTrainingStep } from "../step/training-step.js";
import { defineTask } from "../task/task.js";
import { writeCallParser } from "../testing/call-parser.js";
import { hashSync } from "../testing/hash-sync.js";
import {
  openTinyTraining,
  type TinyTraining,
  type TinyTrainingOptions,
  writeTinyRun,
} from "../testing/tiny-training.js";
import { runTraining } from "./run-training.js";
import { TrainingInterrupted } from "./steps.js";
import { train } from "./train.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const format = writeCallParser(models.folder, "add");
const LEAVES = 3;

const options = (more: TinyTrainingOptions = {}): TinyTrainingOptions => ({
  prompts: ["a", "bb"],
  ...more,
  contextSize: 200,
  data: { train_batch_size: 2, max_response_length: 150, ...more.data },
  actor: { ppo_mini_batch_size: 2, ...more.actor },
  algorithm: { adv_estimator: "tree_grpo", ...more.algorithm },
  rollout: {
    n: 2 * LEAVES,
    tree: { expansions: 2 },
    response_length: 150,
    max_tokens_per_turn: 3,
    ...more.rollout,
    multi_turn: {
      format,
      max_assistant_turns: 5,
      ...(more.rollout?.multi_turn as object),
    },
  },
  trainer: { total_training_steps: 3, val_before_train: false, save_freq: 1, ...more.trainer },
});

/** A tool that adds up how long its texts were; it keeps that as its state. */
function setAdd(
  { environment }: Pick<TinyTraining, "environment">,
  { restores = true, delay = () => 0 }: { restores?: boolean; delay?: (length: number) => number } = {},
) {
  const answers: string[] = [];
  (environment.tools as Map<string, unknown>).set(
    "add",
    tool({
      name: "add",
      description: "Adds up.",
      inputSchema: { type: "object", properties: { text: { type: "string" } } },
      create: () => ({ sum: 0 }),
      execute: async ({ text }: { text?: unknown }, { state }) => {
        const { length } = String(text);
        await new Promise((done) => setTimeout(done, delay(length)));
        state.sum += length;
        answers.push(`sum ${state.sum}`);
        return answers.at(-1)!;
      },
      ...(restores
        ? {
            snapshot: (state: { sum: number }) => ({ ...state }),
            restore: (snapshot: { sum: number }) => ({ ...snapshot }),
          }
        : {}),
    }),
  );
  return answers;
}

async function trainTrees(more: TinyTrainingOptions = {}, given: Parameters<typeof setAdd>[1] = {}) {
  const training = await openTinyTraining(models, options(more));
  setAdd(training, given);
  try {
    const summary = await runTraining(training, { configFolder: training.folder });
    return { ...summary, sha: hashSync(summary.weights) };
  } finally {
    await training.dispose();
  }
}

/** Trains, interrupted after the first step, with all that was loaded anew. @returns the weights' hash. */
async function trainInterrupted(more: TinyTrainingOptions): Promise<string> {
  const controller = new AbortController();
  const interrupted = await openTinyTraining(models, { ...options(more), signal: controller.signal });
  setAdd(interrupted);
  const stopped = runTraining(interrupted, {
    configFolder: interrupted.folder,
    afterStep: async () => controller.abort(new Error("interrupted")),
  });
  await expect(stopped).rejects.toThrow(TrainingInterrupted);
  await interrupted.dispose();
  const again = await openTinyTraining(models, options(more));
  setAdd(again);
  again.config.trainer.default_local_dir = interrupted.config.trainer.default_local_dir;
  again.config.actor_rollout_ref.model.path = interrupted.config.actor_rollout_ref.model.path;
  const { weights } = await runTraining(again, { configFolder: again.folder });
  await again.dispose();
  return hashSync(weights);
}

const branches = (all: readonly Trajectory[]) => all.filter(({ branch }) => branch!.parent !== null);
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

describe("a training whose rollouts grow as trees", () => {
  it("evaluates what conversations share once, and counts it", async () => {
    const training = await openTinyTraining(models, options({ rollout: { n: LEAVES } }));
    const answers = setAdd(training);
    const {
      trajectories,
      metrics,
      advantages: means,
    } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
    });
    await training.dispose();
    const own = branches(trajectories);
    expect(own).toHaveLength(4);
    expect(metrics["tree/branches"]).toBe(4);
    expect(metrics["tree/turns/mean"]).toBe(sum(own.map(({ branch }) => branch!.turns)) / 4);
    const shared = sum(own.map(({ branch, promptLength }) => branch!.tokens - promptLength));
    expect(metrics["tree/shared_tokens"]).toBe(shared);
    expect(shared).toBeGreaterThan(0);
    expect(metrics["tree/own_tokens"]).toBe(sum(own.map(({ branch, tokenIds }) => tokenIds.length - branch!.tokens)));
    // A tool is called once for each turn that was sampled, and that a further turn answers.
    const asked = trajectories.map(({ timeline }) => timeline!.turns.filter(({ role }) => role === "tool").length);
    expect(answers).toHaveLength(sum(asked) - sum(own.map(({ branch }) => branch!.turns)));
    // Each prompt, and of each turn that was sampled the reply before it with the token before that; of a branch's first
    // turn that is there already, but for the token whose logits are needed.
    const replies = trajectories.flatMap(({ timeline, branch }) =>
      timeline!.turns.filter(({ role }) => role === "tool").slice(branch!.turns),
    );
    const once = sum(replies.map(({ start, end }) => end - start + 1));
    const prompts = sum(trajectories.filter((_, i) => i % LEAVES === 0).map(({ promptLength }) => promptLength));
    expect(metrics["engine/prefill_tokens"]).toBeGreaterThanOrEqual(prompts + once);
    expect(metrics["engine/prefill_tokens"]).toBeLessThanOrEqual(prompts + once + own.length);
    const sampled = trajectories.flatMap(({ timeline, branch }) =>
      timeline!.turns.filter(({ role }) => role === "assistant").slice(branch!.turns),
    );
    expect(metrics["engine/decode_tokens"]).toBe(sum(sampled.map(({ start, end }) => end - start)));
    // The update evaluates shared tokens once, too, and learns each path whole.
    expect(
      training.batches
        .flat()
        .map(({ tokenIds }) => tokenIds.length)
        .sort(),
    ).toEqual(trajectories.flatMap(({ tokenIds }, i) => (means[i] === 0 ? [] : [tokenIds.length])).sort());
  });

  it("gives the same bits whatever ends first, with other slots and threads, with snapshots and without", async () => {
    const first = await trainTrees();
    expect((await trainTrees({ maxSequences: 2, threads: 2 }, { delay: (length) => (length * 7) % 5 })).sha).toBe(
      first.sha,
    );
    expect((await trainTrees({ maxSequences: 3 }, { restores: false })).sha).toBe(first.sha);
    expect((await trainTrees({ rollout: { tree: { expansions: 1, rounds: 2 } } })).sha).not.toBe(first.sha);
  });

  it("goes on to the same bits after an interruption, with a journal and sampled ahead", async () => {
    const more: TinyTrainingOptions = {
      trainer: { journal: true, v1: { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 1 } } },
    };
    const whole = await trainTrees(more);
    expect(await trainInterrupted(more)).toBe(whole.sha);
  });

  it("learns from the rest where branches fail, because a tool answers otherwise", async () => {
    const training = await openTinyTraining(models, options());
    let asked = 0;
    setAdd(training, { restores: false, delay: () => asked++ && 0 });
    const add = training.environment.tools.get("add")!;
    const { execute } = add;
    add.execute = async (...given) => {
      const { response, ...rest } = await execute.apply(add, given);
      return { ...rest, response: { text: `${response.text} at ${asked}` } };
    };
    const { trajectories, metrics } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    await training.dispose();
    expect(trajectories.map(({ error }) => error !== undefined)).toEqual(
      trajectories.map(({ branch }) => branch!.parent !== null),
    );
    expect(metrics).toMatchObject({ "rollout/failed": 8, "rollout/kept": 4, "rollout/dropped_groups": 0 });
    expect(training.batches.flat()).toHaveLength(4);
  });

  it("learns", async () => {
    const { steps } = await trainTrees({
      trainer: { total_training_steps: 20 },
      rollout: { n: 4 * LEAVES, multi_turn: { max_assistant_turns: 3 } },
    });
    const rewards = steps.map((metrics) => metrics["critic/score/mean"]!);
    expect(sum(rewards.slice(-3)) / 3).toBeGreaterThan(sum(rewards.slice(0, 3)) / 3 + 0.1);
  });
});

const vine: TinyTrainingOptions = {
  rollout: { n: 2, tree: { expansions: 0 } },
  algorithm: { adv_estimator: "vine", vine: { continuations: 2, max_tokens: 8 } },
};

describe("a training with measured turns", () => {
  it("learns from them, and counts what they cost", async () => {
    const training = await openTinyTraining(models, options(vine));
    setAdd(training);
    const given = { rows: training.trainRows, step: 1, epoch: 0 };
    const { trajectories, metrics, tokenDetails } = await runTrainingStep(training, given);
    await training.dispose();
    expect(trajectories).toHaveLength(4);
    const groups = trajectories.map(({ uid }) => trajectories.filter((t) => t.uid === uid));
    trajectories.forEach(({ turnValues, timeline, reward }, i) => {
      const turns = timeline!.turns.filter(({ role }) => role === "assistant");
      expect(turnValues).toHaveLength(turns.length - 1);
      const values = [sum(groups[i]!.map((t) => t.reward)) / 2, ...turnValues!.map((value) => value!), reward];
      turns.forEach(({ start }, k) => {
        expect(tokenDetails[i]!.advantages![start]).toBeCloseTo(values[k + 1]! - values[k]!, 5);
      });
    });
    const points = sum(trajectories.map(({ turnValues }) => turnValues!.length));
    expect(metrics["agent_loop/continuations/mean"]).toBe((2 * points) / 4);
    const tokens = 4 * metrics["agent_loop/continuation_tokens/mean"]!;
    expect(tokens).toBeGreaterThan(points);
    expect(tokens).toBeLessThanOrEqual(2 * points * 8);
    const own = trajectories.flatMap(({ timeline }) => timeline!.turns.filter(({ role }) => role === "assistant"));
    expect(metrics["engine/decode_tokens"]).toBe(tokens + sum(own.map(({ start, end }) => end - start)));
    expect(metrics["critic/turn_values/mean"]).toBeCloseTo(
      sum(trajectories.flatMap(({ turnValues }) => turnValues!.map((value) => value!))) / points,
      5,
    );
  });

  it("gives the same bits with other slots, and goes on to them after an interruption", async () => {
    const first = await trainTrees(vine);
    expect(
      (await trainTrees({ ...vine, maxSequences: 2 }, { delay: (length) => length % 3, restores: false })).sha,
    ).toBe(first.sha);
    expect(await trainInterrupted(vine)).toBe(first.sha);
  });

  it("learns", async () => {
    const { steps } = await trainTrees({
      ...vine,
      rollout: { n: 4, tree: { expansions: 0 }, multi_turn: { max_assistant_turns: 3 } },
      trainer: { total_training_steps: 30 },
    });
    const rewards = steps.map((metrics) => metrics["critic/score/mean"]!);
    expect(sum(rewards.slice(-3)) / 3).toBeGreaterThan(sum(rewards.slice(0, 3)) / 3 + 0.1);
  });
});

describe("an own loop", () => {
  it("rolls trees out, and compares them; or measures turns", async () => {
    const training = await openTinyTraining(models, options());
    setAdd(training);
    const { policy, environment, trainRows } = training;
    const groups = await rollOut(policy, environment, trainRows, { n: 3, tree: { rounds: 1, expansions: 2 } });
    expect(branches(groups.trajectories)).toHaveLength(4);
    const { indices, advantages: estimated } = advantages.treeGrpo(groups);
    expect(indices).toHaveLength(6);
    expect(estimated.some((values) => values.some((value) => value !== 0))).toBe(true);
    const turnValues = { continuations: 1, maxTokens: null };
    const measured = await rollOut(policy, environment, trainRows, { n: 2, turnValues });
    for (const { turnValues, numTurns } of measured.trajectories) expect(turnValues!.length).toBe(numTurns / 2 - 1);
    const wrong = [
      { tree: { rounds: 0, expansions: 2 } },
      { tree: { expansions: 2 } as never },
      { turnValues: { continuations: 0, maxTokens: null } },
      { turnValues: { continuations: 1 } as never },
    ];
    for (const given of wrong)
      await expect(rollOut(policy, environment, trainRows, { n: 3, ...given })).rejects.toMatchObject({
        code: "config/bad-value",
      });
    await training.dispose();
  });
});

describe("the dump of a training with trees", () => {
  const adder = tool({
    name: "calculator",
    description: "Computes.",
    inputSchema: { type: "object", properties: { expression: { type: "string" } } },
    create: () => ({ calls: 0 }),
    execute: ({ expression }: { expression?: unknown }, { state }) => `${String(expression).length + ++state.calls}`,
  });

  it("has the place of each conversation, and each is held again to equal bits", async () => {
    const given = {
      model: join(import.meta.dirname, "../../../../models/cria-tiny.gguf"),
      task: defineTask({
        rows: [{ question: "There are 20 marbles in a box and 7 marbles in a bag. How many marbles in total?" }],
        tools: [adder],
        reward: ({ answer }: { answer: string }) => answer.length % 7,
        maxTurns: 4,
        maxPromptLength: 120,
        maxResponseLength: 128,
      }),
      n: 6,
      tree: { expansions: 1, rounds: 2 },
      advantages: "tree_grpo" as const,
      steps: 1,
      batchSize: 1,
      temperature: 1.2,
      threads: 1,
      folder: join(models.folder, "dumped"),
    };
    const { folder } = await train(given);
    const lines: DumpLine[] = [];
    for await (const line of readDump(join(folder, "rollouts", "1.jsonl"))) lines.push(line);
    expect(lines.map(({ branch }) => branch!.tree)).toEqual([0, 0, 0, 1, 1, 1]);
    const branched = lines.filter(({ branch }) => branch!.parent !== null);
    expect(branched.length).toBeGreaterThan(0);
    for (const { branch, sampling, token_ids } of branched) {
      const parent = lines[branch!.parent!]!;
      expect(token_ids.slice(0, branch!.tokens)).toEqual(parent.token_ids.slice(0, branch!.tokens));
      expect(sampling!.earlier_seeds).toHaveLength(branch!.turns);
    }
    const replay = await openReplay(folder, { train: given });
    const results = await replay.replay(lines);
    await replay.close();
    expect(results.map(({ equal }) => equal)).toEqual(Array(6).fill(true));
  });
});

describe("a config with trees is refused", () => {
  const open = (more: TinyTrainingOptions) => openTinyTraining(models, options(more));
  const tree = "actor_rollout_ref.rollout.tree.expansions";

  it.each<[string, TinyTrainingOptions, string]>([
    ["samples that are no whole trees", { rollout: { n: 7 } }, "actor_rollout_ref.rollout.n"],
    ["one turn", { rollout: { multi_turn: { enable: false } } }, tree],
    ["a rendering that rewrites turns", { rollout: { multi_turn: { use_inference_chat_template: true } } }, tree],
    ["loops of one's own", { rollout: { agent: { agent_loop_config_path: "loops.yaml" } } }, tree],
    [
      "policies that change",
      {
        rollout: { partial_rollout: "switch" },
        trainer: { v1: { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 1 } } },
      },
      tree,
    ],
    [
      "turns of a teacher",
      { distillation: { enabled: true, guided: { share: 0.5 }, teacher_models: { big: { model_path: "big.gguf" } } } },
      tree,
    ],
    ["an estimator that measures turns", { algorithm: { adv_estimator: "vine" } }, tree],
    [
      "measured turns of one turn",
      { ...vine, rollout: { ...vine.rollout, multi_turn: { enable: false } } },
      "algorithm.adv_estimator",
    ],
    [
      "measured turns and the KL in the reward",
      { ...vine, algorithm: { ...vine.algorithm, use_kl_in_reward: true } },
      "algorithm.adv_estimator",
    ],
    ["tree_grpo without trees", { rollout: { tree: { expansions: 0 } } }, "algorithm.adv_estimator tree_grpo"],
  ])("with %s", async (_, more, subject) => {
    await expect(open(more)).rejects.toMatchObject({ code: "config/bad-value", subject });
  });

  it("with an agent, with a bus, and in a row that says another number", async () => {
    const given = { model: "none.gguf", rows: [{}], agent: () => 0, n: 3, tree: { expansions: 2 } };
    await expect(train(given)).rejects.toMatchObject({ code: "config/bad-value", subject: "train: tree.expansions" });
    const { config, folder } = await writeTinyRun(models, options());
    await expect(openTraining(config, folder, { bus: {} as TrainingBus })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: tree,
    });
    const opened = await open({ row: { __rollout_n__: 4 } });
    const step = runTrainingStep(opened, { rows: opened.trainRows, step: 1, epoch: 0 });
    await expect(step).rejects.toMatchObject({ code: "data/bad-row" });
    await opened.dispose();
    const task = defineTask({ rows: [{ question: "a" }], samples: () => 4, reward: () => 0 });
    const early = train({ model: config.actor_rollout_ref.model.path!, task, n: 3, tree: { expansions: 2 } });
    await expect(early).rejects.toMatchObject({ code: "data/bad-row" });
  });
});
