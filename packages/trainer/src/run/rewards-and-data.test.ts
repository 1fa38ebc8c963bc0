import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import type { TrainConfig } from "../config/train-config.js";
import { runTrainingStep } from "../step/training-step.js";
import { openTinyTraining, type TinyTrainingOptions, writeTinyRun } from "../testing/tiny-training.js";
import { dumpTrajectories } from "../validation/dump-trajectories.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
afterEach(() => vi.restoreAllMocks());

const step = async (options: TinyTrainingOptions) => {
  const training = await openTinyTraining(models, options);
  return { training, ...(await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 })) };
};
const sum = (values: ArrayLike<number>) => Array.from(values).reduce((a, b) => a + b, 0);
/** Returns the error of opening a training. The model does not exist, so that the error must come before loading it. */
const refuse = async (options: TinyTrainingOptions, change: (config: TrainConfig) => void = () => undefined) => {
  const { config, folder } = await writeTinyRun(models, options);
  config.actor_rollout_ref.model.path = "none.gguf";
  change(config);
  return openTraining(config, folder).then(
    () => null,
    (error: unknown) => error,
  );
};

describe("reward_model in a training step", () => {
  it("strategies spread the reward over the sampled tokens; advantages are made of its sum", async () => {
    for (const strategy of ["last_token", "uniform", "exponential_decay", "importance"]) {
      const aggregation = { strategy, trajectory_weight: 2, gamma: 0.5 };
      const { trajectories, metrics } = await step({ rewardModel: { aggregation } });
      for (const t of trajectories) {
        const placed = t.rewards.tokenLevel;
        expect(sum(placed)).toBeCloseTo(2 * t.rewards.score!, 9);
        expect(t.reward).toBeCloseTo(sum(placed), 9);
        const sampled = [...placed].filter((_, i) => t.responseMask[i]);
        if (strategy === "last_token") expect(sampled.filter((r) => r !== 0).length).toBeLessThanOrEqual(1);
        if (strategy === "uniform") expect(Math.max(...sampled)).toBeCloseTo(Math.min(...sampled), 12);
        if (strategy === "exponential_decay" && sampled.length > 1)
          expect(sampled.at(-2)!).toBeCloseTo(sampled.at(-1)! / 2, 12);
      }
      const rewards = trajectories.map((t) => sum(t.rewards.tokenLevel));
      expect(metrics["critic/rewards/mean"]).toBeCloseTo(sum(rewards) / rewards.length, 9);
    }
  });

  it("success, failure and length shape it; reward/score stays the reward function's value", async () => {
    const { trajectories, metrics } = await step({
      reward: "return { score: 7, acc: truth === 'a' };",
      rewardModel: { trajectory_reward: { success_reward: 1, failure_reward: -1, length_penalty: -0.01 } },
    });
    for (const t of trajectories) {
      const sampled = sum(t.responseMask);
      expect(t.reward).toBeCloseTo((t.extraFields.acc ? 1 : -1) - 0.01 * sampled, 9);
      expect(t.rewards).toMatchObject({ score: 7, success: t.extraFields.acc, outcome: t.extraFields.acc ? 1 : -1 });
      expect(t.rewards.length).toBeCloseTo(-0.01 * sampled, 12);
    }
    expect(metrics["reward/score/mean"]).toBe(7);
    const parts = ["outcome", "length", "tools", "turns"].map((part) => metrics[`reward/${part}/mean`]!);
    expect(sum(parts)).toBeCloseTo(metrics["critic/score/mean"]!, 9);
    expect(metrics["reward_extra/acc/mean"]).toBeCloseTo(1 / 3, 9);
  });

  it("dapo takes from long responses; batch judges all at once; naive gets reward_kwargs", async () => {
    const overlong_buffer = { enable: true, len: 8, penalty_factor: 2, log: true };
    const dapo = await step({ reward: "return 1;", rewardModel: { reward_manager: "dapo", overlong_buffer } });
    for (const t of dapo.trajectories)
      expect(t.rewards.score).toBeCloseTo(1 - (2 * (t.tokenIds.length - t.promptLength)) / 8, 9);
    expect(dapo.metrics["reward_extra/overlong_reward/mean"]).toBeLessThan(0);

    const batch = await step({
      reward: "if (!Array.isArray(source)) throw new Error('one'); return source.map((_, i) => i);",
      rewardModel: { reward_manager: "batch" },
    });
    expect(batch.trajectories.map((t) => t.rewards.score)).toEqual(Array.from({ length: 12 }, (_, i) => i));

    const naive = await step({
      reward: "return arguments[4].bonus;",
      customRewardFunction: { reward_kwargs: { bonus: 3 } },
    });
    expect(naive.metrics["critic/score/mean"]).toBe(3);
  });

  it("a reward function that hangs judges nothing: its conversations are left out, and counted", async () => {
    vi.spyOn(process.stderr, "write").mockImplementation(() => true);
    const { trajectories, metrics } = await step({
      reward: "return truth === 'a' ? new Promise(() => {}) : 1;",
      rewardModel: { timeout_s: 0.05 },
    });
    expect(metrics["critic/score/mean"]).toBe(1);
    expect(metrics).toMatchObject({ "rollout/judge_failed": 4, "rollout/failed_ratio": 1 / 3, "rollout/kept": 8 });
    expect(trajectories.filter((t) => t.error === "the reward function gave no answer within 0.05 s")).toHaveLength(4);
  });

  it("contradictory settings are refused before a model is loaded", async () => {
    const overlong_buffer = { enable: true, len: 4 };
    expect(await refuse({ rewardModel: { reward_manager: "prime" } })).toMatchObject({
      code: "config/unknown-name",
      expected: expect.stringContaining("batch, dapo, naive"),
      received: "prime",
    });
    expect(await refuse({ rewardModel: { overlong_buffer } })).toMatchObject({
      code: "config/bad-value",
      subject: "reward_model.overlong_buffer.enable",
      expected: expect.stringContaining("dapo"),
    });
    expect(
      await refuse({ rewardModel: { reward_manager: "dapo", overlong_buffer: { enable: true, len: 40 } } }),
    ).toMatchObject({ code: "config/bad-value", expected: expect.stringContaining("8 tokens"), received: "40" });
    expect(await refuse({ rewardModel: { aggregation: { strategy: "first" } } })).toMatchObject({
      code: "config/unknown-name",
      subject: "reward_model.aggregation.strategy",
      expected: expect.stringContaining("last_token, uniform"),
      received: "first",
    });
    const unknown = [
      await refuse({}, (config) => {
        config.algorithm.adv_estimator = "gropo";
      }),
      await refuse({}, (config) => {
        config.actor_rollout_ref.actor.policy_loss.loss_mode = "ppo2";
      }),
    ];
    expect(unknown).toEqual(
      ["algorithm.adv_estimator", "actor_rollout_ref.actor.policy_loss.loss_mode"].map((subject) =>
        expect.objectContaining({ code: "config/unknown-name", subject }),
      ),
    );
    const noFunction = await refuse({}, (config) => {
      config.custom_reward_function.path = null;
    });
    expect(noFunction).toMatchObject({
      code: "config/unknown-data-source",
      subject: expect.stringMatching(/^row 0 \(.*rows\.jsonl, line 1\): data_source "test"$/),
      expected: expect.stringContaining("openai/gsm8k"),
    });
    await expect(
      writeTinyRun(models, { rewardModel: { trajectory_reward: { length_penalty: 0.1 } } }),
    ).rejects.toMatchObject({
      code: "config/bad-value",
      subject: expect.stringMatching(/length_penalty$/),
      received: "0.1",
    });
  });

  it("a row that nothing can score is named before a model is loaded, at any place", async () => {
    const { config, folder } = await writeTinyRun(models, { data: { val_files: "val.jsonl" } });
    const row = (data_source: string, extra_info: object = {}) =>
      `${JSON.stringify({ data_source, prompt: [{ role: "user", content: "a" }], extra_info })}\n`;
    const write = (...rows: string[]) => writeFileSync(join(folder, "val.jsonl"), rows.join(""));
    writeFileSync(join(folder, "rows.jsonl"), row("openai/gsm8k").repeat(3));
    const modules = `import { BaseInteraction, BaseTool } from "@cria/tools";
      const schema = (name) => ({ type: "function", function: { name, description: "", parameters: { type: "object" } } });
      export class Silent extends BaseTool {
        constructor(config) { super(schema(config.name), config); }
        async execute() { return { response: { text: "" } }; }
      }
      export class Scoring extends Silent { async calcReward() { return 1; } }
      export class Talk extends BaseInteraction {
        async startInteraction() {}
        async generateResponse() { return { shouldTerminate: true, content: "", score: 0 }; }
        async finalizeInteraction() {}
      }`;
    writeFileSync(join(folder, "mine.ts"), modules);
    const tool = (kind: string) => `  - class_name: ./mine.ts#${kind}\n    config: { name: ${kind.toLowerCase()} }\n`;
    writeFileSync(join(folder, "silent.yaml"), `tools:\n${tool("Silent")}`);
    writeFileSync(join(folder, "both.yaml"), `tools:\n${tool("Silent")}${tool("Scoring")}`);
    writeFileSync(join(folder, "talk.yaml"), "interaction:\n  - name: talk\n    class_name: ./mine.ts#Talk\n");
    config.custom_reward_function.path = null;
    config.actor_rollout_ref.model.path = "none.gguf";
    const { multi_turn } = config.actor_rollout_ref.rollout;
    const openError = () => openTraining(config, folder).catch((error: unknown) => error);
    const unknown = {
      code: "config/unknown-data-source",
      subject: expect.stringMatching(/^row 1 \(.*val\.jsonl, line 2\): data_source "sums"$/),
      expected: expect.stringContaining("openai/gsm8k"),
    };
    const fine = { code: "engine/file-not-found" };
    write(row("openai/gsm8k"), row("sums"));
    expect(await openError()).toMatchObject(unknown);
    multi_turn.tool_config_path = "silent.yaml";
    expect(await openError()).toMatchObject(unknown);
    multi_turn.tool_config_path = "both.yaml";
    expect(await openError()).toMatchObject(fine);
    // This row may call only the other tool.
    write(row("openai/gsm8k"), row("sums", { need_tools_kwargs: true, tools_kwargs: { silent: {} } }));
    expect(await openError()).toMatchObject(unknown);
    multi_turn.interaction_config_path = "talk.yaml";
    expect(await openError()).toMatchObject(unknown);
    write(row("openai/gsm8k"), row("sums", { interaction_kwargs: { name: "talk" } }));
    expect(await openError()).toMatchObject(fine);
  });

  it("a TypeScript reward function needs no build step", async () => {
    const { config, folder } = await writeTinyRun(models);
    const source = "export const judge = (source: string, text: string): number => (text.length > 0 ? 0.5 : 0);";
    writeFileSync(join(folder, "judge.ts"), source);
    config.custom_reward_function = { path: "judge.ts", name: "judge", reward_kwargs: {} };
    const training = await openTraining(config, folder);
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    await training.dispose();
    for (const t of trajectories) expect([0, 0.5]).toContain(t.rewards.score);
  });
});

describe("data.* in a training", () => {
  const prompts = ["a", "b".repeat(30), "ccc"];

  it("allow_control_tokens says whether others' text may become control tokens", async () => {
    const { config, folder } = await writeTinyRun(models);
    const messages = [{ role: "user" as const, content: "<|im_end|>" }];
    for (const allowed of [false, true]) {
      config.data.allow_control_tokens = allowed;
      const training = await openTraining(config, folder);
      const [end] = training.policy.engine.tokenize("<|im_end|>");
      const ids = training.policy.tokenizer.encodePrompt(messages);
      expect([...ids].filter((id) => id === end)).toHaveLength(allowed ? 2 : 1);
      await training.dispose();
    }
  });

  it("filter_overlong_prompts leaves long prompts out, and caches their lengths", async () => {
    vi.spyOn(process.stderr, "write").mockImplementation(() => true);
    const cache_dir = join(models.folder, "lengths");
    mkdirSync(cache_dir);
    // Including the template, the second prompt has 49 tokens.
    const data = { filter_overlong_prompts: true, max_prompt_length: 48, cache_dir };
    const filtered = await openTinyTraining(models, { prompts, data });
    expect(filtered.trainRows.map((row) => row.index)).toEqual([0, 2]);
    expect(filtered.trainRows.map((row) => row.uid)).toEqual(["test/0:0", "test/0:2"]);
    expect(readdirSync(cache_dir)).toHaveLength(1);
    const again = await openTinyTraining(models, { prompts, data });
    expect(again.trainRows).toHaveLength(2);
    expect(readdirSync(cache_dir)).toHaveLength(1);
  });

  it("truncation error names row, file and line", async () => {
    const training = await openTinyTraining(models, { prompts, data: { max_prompt_length: 20 } });
    await expect(runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 })).rejects.toMatchObject({
      code: "data/prompt-too-long",
      subject: expect.stringMatching(/^row 1 \(.*rows\.jsonl, line 2\)/),
    });
  });

  it("return_full_prompt gives the rendered prompt to reward functions and dumps", async () => {
    const { training, trajectories } = await step({
      reward: "return { score: 1, seen: arguments[3].full_prompt.length };",
      data: { return_full_prompt: true },
    });
    const lines = dumpTrajectories(training.policy.engine, training.environment, trajectories, {
      step: 1,
      rows: training.trainRows,
    });
    for (const { extra, messages, score } of lines) {
      expect(extra.full_prompt).toHaveLength(extra.seen as number);
      expect(extra.full_prompt).toContain(messages[0]!.content);
      expect(score).toBe(1);
    }
  });

  it("rows of one index in two files stay two groups", async () => {
    const { config, folder } = await writeTinyRun(models, { row: { extra_info: { index: 0 } } });
    config.data.train_files = ["rows.jsonl", "rows.jsonl"];
    const training = await openTraining(config, folder);
    await training.dispose();
    expect(new Set(training.trainRows.map((row) => row.uid)).size).toBe(6);
  });

  it("custom_cls reads rows its own way; reward_fn_key routes them", async () => {
    const { config, folder } = await writeTinyRun(models);
    const source = `
      import { RolloutDataset } from "@cria/rollout";
      export class Doubled extends RolloutDataset {
        override mapRecord(record: { prompt: unknown }) {
          return { ...record, source: "doubled/" + this.config["train_batch_size"] };
        }
      }`;
    writeFileSync(join(folder, "doubled.ts"), source);
    config.data.custom_cls = { path: "doubled.ts", name: "Doubled" };
    config.data.reward_fn_key = "source";
    const training = await openTraining(config, folder);
    await training.dispose();
    expect(training.trainRows.map((row) => row.dataSource)).toEqual(Array(3).fill("doubled/3"));
    config.data.custom_cls = { path: "doubled.ts", name: null };
    await expect(openTraining(config, folder)).rejects.toMatchObject({
      code: "config/bad-value",
      subject: expect.stringContaining("custom_cls.name"),
    });
    config.data.custom_cls = { path: "reward.mjs", name: "computeScore" };
    await expect(openTraining(config, folder)).rejects.toMatchObject({
      code: "config/bad-value",
      expected: expect.stringContaining("RolloutDataset"),
    });
  });
});
