import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasFailed } from "@cria/core";
import { loadModel } from "@cria/engine";
import { loadValueModel } from "@cria/engine/internal";
import { makeNormals, TinyModels } from "@cria/engine/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { Policy } from "../policy/policy.js";
import { openTraining } from "../run/training.js";
import { runTrainingStep } from "../step/training-step.js";
import { type ChatServer, startChatServer } from "../testing/chat-server.js";
import { dropTimes } from "../testing/drop-times.js";
import {
  openTinyTraining,
  type TinyTraining,
  type TinyTrainingOptions,
  writeTinyRun,
} from "../testing/tiny-training.js";
import { dumpTrajectories } from "../validation/dump-trajectories.js";
import { validate } from "../validation/validate.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
const opened: { judgedRewards: { dispose(): Promise<void> } | null }[] = [];
const servers: ChatServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((training) => training.judgedRewards?.dispose()));
  await Promise.all(servers.splice(0).map((server) => server.close()));
  vi.restoreAllMocks();
});

const open = async (rewardModel: Record<string, unknown>, options: TinyTrainingOptions = {}) => {
  const training = await openTinyTraining(models, { ...options, rewardModel: { enable: true, ...rewardModel } });
  opened.push(training);
  return training;
};
const take = (training: TinyTraining) => runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
const serve = async (...args: Parameters<typeof startChatServer>) => {
  const server = await startChatServer(...args);
  servers.push(server);
  return server;
};
/** A grade that is a function of what it grades. */
const grade = (prompt: string) => `Score: ${[...prompt].reduce((sum, c) => (sum * 31 + c.codePointAt(0)!) % 11, 0)}`;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("a training step with reward models", () => {
  it("adds their scores to the rules', and to the metrics", async () => {
    const server = await serve(({ messages }) => grade(messages[0]!.content));
    const training = await open({ model: { base_url: server.url, weight: 2 }, rule_weight: 0.5 });
    const { trajectories, metrics } = await take(training);
    expect(server.requests).toHaveLength(12);
    let sum = 0;
    for (const { extraFields, reward, rewards } of trajectories) {
      const { rule_score, rm_score, rm_verdict } = extraFields as Record<string, number>;
      const score = rewards.score!;
      expect(rm_verdict).toBe(`Score: ${Math.round(rm_score! * 10)}`);
      expect(score).toBeCloseTo(0.5 * rule_score! + 2 * rm_score!, 12);
      expect(reward).toBeCloseTo(score, 12);
      sum += score;
    }
    expect(metrics["critic/rewards/mean"]).toBeCloseTo(sum / 12, 9);
    expect(metrics["critic/score/mean"]).toBeCloseTo(sum / 12, 9);
    expect(metrics["rollout/failed"]).toBe(0);
    expect(metrics["reward_extra/rm_score/mean"]).toBeGreaterThan(0);
    // Statistics of the weighted parts: the means add up to the score; the spread is the population's.
    const parts = trajectories.map(({ extraFields }) => 0.5 * (extraFields.rule_score as number));
    const mean = parts.reduce((a, b) => a + b) / 12;
    expect(metrics["reward_part/rule/mean"]).toBeCloseTo(mean, 12);
    expect(metrics["reward_part/rule/std"]).toBeCloseTo(
      Math.sqrt(parts.reduce((all, value) => all + (value - mean) ** 2, 0) / 12),
      12,
    );
    expect(metrics["reward_part/rule/mean"]! + metrics["reward_part/rm/mean"]!).toBeCloseTo(sum / 12, 9);
    expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
  });

  it("judges while old_log_prob is computed", async () => {
    // Each waits for the other: a judge for old_log_prob to begin, old_log_prob for every verdict.
    const events: string[] = [];
    const until = (isDone: () => boolean) => vi.waitFor(() => expect(isDone()).toBe(true), { interval: 5 });
    const server = await serve(async () => {
      await until(() => events.length > 0);
      events.push("judged");
      return "Score: 5";
    });
    const training = await open(
      { model: { base_url: server.url, max_num_seqs: 64 } },
      { actor: { old_log_prob: "separate" } },
    );
    const score = training.policy.engine.score.bind(training.policy.engine);
    const engine = Object.create(training.policy.engine, {
      score: {
        value: async (...args: Parameters<typeof score>) => {
          events.push("old_log_prob begins");
          const scores = await score(...args);
          await until(() => events.length === 13);
          await wait(200);
          events.push("old_log_prob ends");
          return scores;
        },
      },
    });
    const { metrics } = await take({ ...training, policy: new Policy({ ...training.policy, engine }) });
    expect(events).toEqual(["old_log_prob begins", ...Array(12).fill("judged"), "old_log_prob ends"]);
    // The step's time has them once.
    expect(metrics["timing_s/old_log_prob"]).toBeGreaterThan(0.2);
    expect(metrics["timing_s/reward"]).toBeLessThan(metrics["timing_s/old_log_prob"]! / 2);
  });

  it("computes the same whether the step waits for them first or not", async () => {
    const server = await serve(({ messages }) => grade(messages[0]!.content));
    const results = [];
    for (const launch_reward_fn_async of [true, false]) {
      const training = await open({ model: { base_url: server.url }, launch_reward_fn_async });
      const { trajectories, metrics } = await take(training);
      results.push({
        trajectories: trajectories.map((t) => [t.reward, t.rewards, t.extraFields]),
        metrics: dropTimes(metrics),
      });
    }
    expect(results[1]!.trajectories).toEqual(results[0]!.trajectories);
    expect(results[1]!.metrics["actor/pg_loss"]).toBeCloseTo(results[0]!.metrics["actor/pg_loss"]!, 6);
    expect(results[1]!.metrics["actor/grad_norm"]).toBeCloseTo(results[0]!.metrics["actor/grad_norm"]!, 5);
  });

  it("has its verdicts read by a teacher, also when the step computes while they are written", async () => {
    const server = await serve(({ messages }) => grade(messages[0]!.content));
    const distillation = {
      enabled: true,
      teacher_models: { corrected: { weights: "live", correction_key: "rm_verdict" } },
    };
    // Without updates it has the weights from before each of these steps.
    const fresh = await openTinyTraining(models);
    for (const launch_reward_fn_async of [true, false]) {
      const training = await open({ model: { base_url: server.url }, launch_reward_fn_async }, { distillation });
      const { trajectories, tokenDetails, metrics } = await take(training);
      expect(metrics["distillation/corrected"]).toBe(1);
      for (const [i, { tokenIds, promptLength, rowIndex, extraFields }] of trajectories.entries()) {
        const { prompt } = training.trainRows.find(({ index }) => index === rowIndex)!;
        const hint = { role: "system" as const, content: String(extraFields.rm_verdict) };
        const hinted = training.policy.tokenizer.encodePrompt([hint, ...prompt]);
        const sequence = { tokenIds: [...hinted, ...tokenIds.subarray(promptLength)], from: hinted.length };
        const [scores] = await fresh.policy.engine.score([sequence], { temperature: 1 });
        expect(Array.from(tokenDetails[i]!.teacherLogprobs!).slice(promptLength)).toEqual(
          Array.from(scores!.logprobs.subarray(hinted.length)).map((value) => expect.closeTo(value, 5)),
        );
      }
    }
    await fresh.policy.engine.dispose();
  });

  it("goes with dynamic sampling, greedy baselines and validation", async () => {
    const server = await serve(({ messages }) => grade(messages[0]!.content));
    const model = { base_url: server.url };
    const filtered = await open({ model }, { algorithm: { filter_groups: { enable: true } } });
    expect((await take(filtered)).metrics["train/num_gen_batches"]).toBe(1);
    const remax = await open({ model }, { algorithm: { adv_estimator: "remax" }, data: { val_files: "rows.jsonl" } });
    const before = server.requests.length;
    await take(remax);
    expect(server.requests.length - before).toBe(12 + 3);
    const validation = await validate(remax, { temperature: 0, step: 0 });
    expect(validation.success).toBeCloseTo(
      validation.trajectories.reduce(
        (sum, { extraFields: e }) => sum + (e.rule_score as number) + (e.rm_score as number),
        0,
      ) / 3,
      12,
    );
  });

  it.each([true, false])("leaves out conversations that the judge cannot score (async: %s)", async (isAsync) => {
    // One of the prompt "bb"'s four, and all of "ccc"'s but one.
    const asked = { bb: 0, ccc: 0 };
    const server = await serve(({ messages }) => {
      const prompt = messages[0]!.content;
      if (prompt.includes("\nbb\n") && asked.bb++ === 1) return "no idea";
      if (prompt.includes("\nccc\n") && asked.ccc++ > 0) return { status: 500, body: "overloaded" };
      return grade(prompt);
    });
    const model = { base_url: server.url, num_retries: 0 };
    const training = await open({ model, launch_reward_fn_async: isAsync });
    const { trajectories, metrics } = await take(training);
    const failed = trajectories.filter(hasFailed);
    expect(trajectories).toHaveLength(12);
    expect(failed.map((t) => t.uid.at(-1)).sort()).toEqual(["1", "2", "2", "2"]);
    for (const t of failed) {
      expect(t.error).toMatch(/^reward model rm: (verdict "no idea": |.*HTTP 500)/);
      expect(
        dumpTrajectories(training.policy.engine, training.environment, [t], { step: 1, rows: training.trainRows })[0],
      ).toMatchObject({
        reward: null,
        score: null,
        extra: { rm_error: expect.any(String) },
      });
    }
    expect(metrics).toMatchObject({
      "rollout/failed": 4,
      "rollout/judge_failed": 4,
      "rollout/dropped_groups": 1,
      "rollout/kept": 7,
    });
    const kept = trajectories.filter((t) => !hasFailed(t) && !t.uid.endsWith("2"));
    expect(metrics["critic/rewards/mean"]).toBeCloseTo(kept.reduce((sum, t) => sum + t.reward, 0) / 7, 12);
    const trained = training.batches.flat().map(({ tokenIds }) => Array.from(tokenIds).join());
    for (const t of [...failed, ...trajectories.filter(({ uid }) => uid.endsWith("2"))])
      expect(trained).not.toContain(t.tokenIds.join());
    const warnings = training.events.flatMap((event) => (event.type === "warning" ? [event.text] : []));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/could not be judged, and is left out .*\n {2}row \d .*sample \d: reward model rm/);
  });

  it("ends when the server is gone, with its reason: nothing was judged", async () => {
    const gone = await startChatServer(() => "");
    await gone.close();
    const training = await open({ model: { base_url: gone.url, num_retries: 0 } });
    await expect(take(training)).rejects.toMatchObject({
      code: "rollout/all-failed",
      subject: "step 1",
      expected: expect.stringContaining("12 conversations"),
      received: expect.stringMatching(/row \d, sample \d: .*ECONNREFUSED/),
    });
    expect(training.batches).toEqual([]);
  });

  it("ends when the server refuses every request", async () => {
    const server = await serve(() => ({ status: 401, body: "bad key" }));
    const training = await open({ model: { base_url: server.url } });
    await expect(take(training)).rejects.toMatchObject({
      code: "config/endpoint-refused",
      received: expect.stringContaining("401"),
    });
    expect(training.batches).toEqual([]);
  });
});

/** Rows of F32. */
function writeSafetensors(name: string, tensors: Record<string, ArrayLike<number>>): string {
  let offset = 0;
  const header = Object.fromEntries(
    Object.entries(tensors).map(([key, { length }]) => {
      const data_offsets = [offset, offset + 4 * length];
      offset += 4 * length;
      return [key, { dtype: "F32", shape: [1, length], data_offsets }];
    }),
  );
  const json = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  const data = Object.values(tensors).map((values) => Buffer.from(Float32Array.from(values).buffer));
  const path = join(models.folder, name);
  writeFileSync(path, Buffer.concat([size, json, ...data]));
  return path;
}

describe("GGUF reward models", () => {
  it("judge by verdict, in this process", async () => {
    const path = await models.write({ seed: 9, embeddingScale: 0.25 });
    writeFileSync(join(models.folder, "short.jinja"), "{{ answer }}");
    const training = await open({
      // A random model writes no grade; any character of its verdict stands for one.
      model: {
        path,
        prompt_template_path: join(models.folder, "short.jinja"),
        score_pattern: "()[^]",
        max_tokens: 4,
        max_model_len: 96,
      },
      rule_weight: 0,
    });
    const { trajectories, metrics } = await take(training);
    expect(metrics["rollout/judge_failed"]).toBe(0);
    expect(trajectories.every((t) => typeof t.extraFields.rm_verdict === "string")).toBe(true);
  });

  it("of type yes_no score by the probability of an answer", async () => {
    const path = await models.write({ seed: 9, embeddingScale: 0.25 });
    writeFileSync(join(models.folder, "short.jinja"), "{{ answer }}");
    const training = await open({
      model: { path, type: "yes_no", yes: "y", no: "n", prompt_template_path: join(models.folder, "short.jinja") },
      rule_weight: 0,
    });
    const { trajectories, metrics } = await take(training);
    expect(metrics["rollout/judge_failed"]).toBe(0);
    // By what a plain model gives the two tokens.
    const engine = await models.load({}, { path, lora: { rank: 1, alpha: 1 } });
    const tokenizer = DeltaTokenizer.forModel(engine);
    const { extraFields, messages } = trajectories[0]!;
    const promptIds = tokenizer.encodePrompt([{ role: "user", content: messages.at(-1)!.content }]);
    const [y, n] = await Promise.all(
      ["y", "n"].map(async (answer) => {
        const [result] = await engine.score([
          { tokenIds: [...promptIds, ...engine.tokenize(answer)], from: promptIds.length },
        ]);
        return Math.exp(result!.logprobs[promptIds.length]!);
      }),
    );
    expect(extraFields.rm_score).toBeCloseTo(y! / (y! + n!), 5);
    expect(new Set(trajectories.map((t) => t.extraFields.rm_score)).size).toBeGreaterThan(4);
  });

  it("of type score_head score by the head of the original model", async () => {
    const path = await models.write({ seed: 9 });
    const normal = makeNormals(3);
    const data = Float32Array.from({ length: 32 }, () => normal());
    const head = writeSafetensors("head.safetensors", { "model.norm.weight": [1, 2, 3], "score.weight": data });
    const training = await open({ model: { path, type: "score_head", head_path: head, weight: 0.1 }, rule_weight: 0 });
    const { trajectories, metrics } = await take(training);
    expect(metrics["rollout/judge_failed"]).toBe(0);
    expect(new Set(trajectories.map((t) => t.extraFields.rm_score)).size).toBeGreaterThan(4);
    // By hand: the head's product with the normed state, which a row of the identity in its place shows number by number.
    const tiny = await loadModel({ path, threads: 1, contextSize: 64 });
    const probe = await loadValueModel({ path, threads: 1, lora: { rank: 1, alpha: 1 } });
    try {
      const ids = DeltaTokenizer.forModel(tiny).encodeWhole(trajectories[0]!.messages);
      let expected = 0;
      for (let i = 0; i < 32; i++) {
        await probe.writeTensor("value_head.weight", new Float32Array(32).fill(1, i, i + 1));
        const [values] = await probe.values([{ tokenIds: [...ids, 0], from: ids.length }]);
        expected += values!.at(-1)! * data[i]!;
      }
      expect(trajectories[0]!.extraFields.rm_score).toBeCloseTo(expected, 4);
      expect(trajectories[0]!.reward).toBeCloseTo(0.1 * expected, 5);
    } finally {
      await Promise.all([tiny.dispose(), probe.dispose()]);
    }
  });
});

describe("configs of reward models", () => {
  const refuse = async (rewardModel: object) => {
    try {
      const { config, folder } = await writeTinyRun(models, { rewardModel: { enable: true, ...rewardModel } });
      config.actor_rollout_ref.model.path = "none.gguf";
      await openTraining(config, folder);
    } catch (error) {
      return error;
    }
    return null;
  };

  it.each<[rewardModel: object, subject: RegExp, details?: object]>([
    [{}, /^reward_model\.model$/],
    [
      { model: { path: "a.gguf", base_url: "http://x/v1" } },
      /model\.0/,
      { expected: expect.stringMatching(/base_url/) },
    ],
    [{ model: [{}] }, /reward_model\.model\.0/, { expected: expect.stringContaining("path") }],
    [{ model: { base_url: "http://x/v1", type: "score_head" } }, /model\.0/],
    [{ model: { base_url: "http://x/v1", min_score: 1, max_score: 1 } }, /max_score/],
    [{ model: { base_url: "http://x/v1", score_pattern: "Score: \\d" } }, /score_pattern/],
    [{ model: { base_url: "http://x/v1", score_pattern: "(" } }, /score_pattern/],
    [
      { model: { base_url: "http://x/v1", prompt_template_path: "no.jinja" } },
      /prompt_template_path/,
      { code: "config/unreadable", received: expect.stringContaining("no.jinja") },
    ],
    [
      {
        model: [
          { base_url: "http://x/v1", name: "a" },
          { base_url: "http://x/v1", name: "a" },
        ],
      },
      /name/,
    ],
    [
      { model: { base_url: "http://x/v1", wieght: 2 } },
      /reward_model\.model\.0\.wieght/,
      { code: "config/unknown-key" },
    ],
    [{ model: { path: "no.gguf" } }, /no\.gguf/, { code: "engine/file-not-found" }],
    [{ enable: false, rule_weight: 2 }, /rule_weight$/],
    [
      {
        model: { base_url: "http://x/v1" },
        rule_weight: 0,
        reward_manager: "dapo",
        overlong_buffer: { enable: true, len: 4 },
      },
      /overlong_buffer\.enable$/,
    ],
  ])("%j is refused", async (rewardModel, subject, details) => {
    expect(await refuse(rewardModel)).toMatchObject({
      code: "config/bad-value",
      subject: expect.stringMatching(subject),
      ...details,
    });
  });

  it.each([
    ["none", "nothing", { received: expect.stringContaining("ENOENT") }],
    ["other", { "lm_head.weight": [1] }, { received: expect.stringContaining("lm_head.weight") }],
    [
      "short",
      { "score.weight": [1, 2] },
      {
        code: "config/bad-score-head",
        expected: expect.stringContaining("[1, 32]"),
        received: expect.stringContaining("[1, 2]"),
      },
    ],
  ])("a head file %s with %j is refused", async (name, tensors, details) => {
    if (typeof tensors === "object") writeSafetensors(`${name}.safetensors`, tensors as Record<string, number[]>);
    const head_path = join(models.folder, `${name}.safetensors`);
    expect(await refuse({ model: { path: await models.write(), type: "score_head", head_path } })).toMatchObject({
      code: "config/bad-safetensors",
      subject: expect.stringContaining(`${name}.safetensors`),
      ...details,
    });
  });

  it("with rule_weight 0 rows need no reward function", async () => {
    const options = { customRewardFunction: { path: null } };
    const training = await open({ model: { base_url: "http://127.0.0.1:9/v1" }, rule_weight: 0 }, options);
    expect(training.judgedRewards).not.toBeNull();
    await expect(open({ model: { base_url: "http://127.0.0.1:9/v1" } }, options)).rejects.toMatchObject({
      code: "config/unknown-data-source",
    });
  });
});
