import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, hasFailed, type Trajectory } from "@cria/core";
import { FakeEngine } from "@cria/core/testing";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { CalculatorTool, getToolFormat } from "@cria/tools";
import { thinkingTags } from "@cria/tools/internal";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  averageExtras,
  type BatchRewardFunction,
  computeOverlongPenalty,
  defaultMultiTurn,
  extractFinalAnswer,
  findToolCalls,
  makeRewardManager,
  maskToolCalls,
  parseRow,
  type RewardFunction,
  type RewardInfo,
  type RewardManager,
  type RewardRequest,
  type RolloutOptions,
  registerReward,
  rewardFunctions,
  rewardManagers,
  runRollouts,
} from "../internal.js";
import { makeFakeRollout } from "../testing/index.js";
import { finishTrajectory } from "./finish-trajectory.js";

/** The error with this code, about a subject whose name holds the text. */
const refusal = (code: string, subject: string, more: object = {}) =>
  expect.objectContaining({ code, subject: expect.stringContaining(subject), ...more });

afterEach(() => vi.useRealTimers());

const info = { toolScore: null, interactionScore: null } as RewardInfo;
const request = (more: Partial<RewardRequest> = {}): RewardRequest => ({
  dataSource: "test",
  solutionText: "#### 7",
  groundTruth: "7",
  extraInfo: info,
  responseLength: 10,
  place: "row 3, sample 1",
  order: 0,
  uid: "a",
  ...more,
});

describe("semantic 12: reward functions", () => {
  it("get data source, sampled text, ground truth, extra info and kwargs; they may be sync or async", async () => {
    const seen: unknown[][] = [];
    const sync: RewardFunction = (...args) => {
      seen.push(args);
      return 0.5;
    };
    const async: RewardFunction = async (_s, text) => ({ score: text.length, length: text.length });
    const kwargs = { strict: true };
    const options = { reward: sync, kwargs };
    expect(await makeRewardManager("naive", options).judge([request()])).toEqual([
      { score: 0.5, extra: {}, parts: [{ name: "score", value: 0.5, weight: 1, by: "the reward function" }] },
    ]);
    expect(seen).toEqual([["test", "#### 7", "7", info, kwargs]]);
    expect(await makeRewardManager("naive", { reward: async }).judge([request()])).toEqual([
      {
        score: 6,
        extra: { length: 6 },
        parts: [{ name: "score", value: 6, weight: 1, by: "the reward function" }],
      },
    ]);
  });

  it("are routed by data_source; else calculateScore, else the sum of calcReward", async () => {
    registerReward("routed", () => ({ score: 3 }));
    const judge = async (scores: Partial<RewardInfo>, more: Partial<RewardRequest> = {}) =>
      (await makeRewardManager("naive").judge([request({ extraInfo: { ...info, ...scores }, ...more })]))[0];
    const both = { interactionScore: 0.5, toolScore: 0.25 };
    expect(await judge({}, { dataSource: "openai/gsm8k" })).toMatchObject({ score: 1 });
    expect(await judge({}, { dataSource: "openai/gsm8k", solutionText: "#### 8" })).toMatchObject({ score: 0 });
    const by = (judge: string) => [expect.objectContaining({ by: judge })];
    expect(await judge(both, { dataSource: "routed" })).toMatchObject({
      score: 3,
      parts: by('the reward of data_source "routed"'),
    });
    expect(await judge(both)).toMatchObject({ score: 0.5, parts: by("calculateScore of the interaction") });
    expect(await judge({ toolScore: 0.25 })).toMatchObject({ score: 0.25, parts: by("calcReward of the tools") });
    await expect(judge({})).rejects.toThrow(
      refusal("config/unknown-data-source", 'row 3, sample 1: data_source "test"', {
        // A task's option, a config's key, and the call for all runs.
        remedy: expect.stringMatching(/\breward\b.*\bcustom_reward_function\.path\b.*\bregisterReward\b/),
      }),
    );
    // A failed judge gives no score of 0, and a tool's score does not replace an interaction's.
    expect(await judge({ toolScore: 0.25 }, { scoreError: "offline" })).toEqual({ error: "offline", extra: {} });
    expect(await judge({ interactionScore: 1 }, { scoreError: "offline" })).toMatchObject({ score: 1 });
    expect(await judge({}, { dataSource: "routed", scoreError: "offline" })).toMatchObject({ score: 3 });
  });

  it("that fail or give no number have not judged, and say why and where", async () => {
    for (const [reward, message] of [
      [() => Number.NaN, /gave no score: expected a finite number.*received NaN/],
      [() => ({ points: 1 }), /received \{"points":1\}/],
      [() => undefined, /received undefined/],
      [
        () => {
          throw new Error("no judge today");
        },
        /reward function failed: no judge today \(at .*rewards\.test\.ts:\d+/,
      ],
      [async () => Promise.reject(new Error("offline")), /offline/],
    ] as const) {
      const options = { reward: reward as unknown as RewardFunction };
      const [judged] = await makeRewardManager("naive", options).judge([request()]);
      expect(judged).toEqual({ error: expect.stringMatching(message), extra: {} });
    }
    const fatal = () => {
      throw new ConfigError("is missing", { code: "config/x", subject: "a key" });
    };
    await expect(makeRewardManager("naive", { reward: fatal }).judge([request()])).rejects.toThrow(
      refusal("config/x", "a key"),
    );
  });

  it("that take too long have not judged either, whether they wait or block", async () => {
    const late = { error: "the reward function gave no answer within 0.02 s", extra: {} };
    const hangs: RewardFunction = () => new Promise(() => undefined);
    const blocks: RewardFunction = () => {
      const end = performance.now() + 40;
      while (performance.now() < end);
      return 1;
    };
    const quick: RewardFunction = async () => 1;
    for (const [reward, timeoutS, expected] of [
      [hangs, 0.02, late],
      [blocks, 0.02, late],
      [quick, 60, { score: 1, extra: {}, parts: expect.anything() }],
    ] as const)
      expect(await makeRewardManager("naive", { reward, timeoutS }).judge([request()])).toEqual([expected]);
    const hangsForAll: BatchRewardFunction = () => new Promise(() => undefined);
    const batch = makeRewardManager("batch", { reward: hangsForAll, timeoutS: 0.02 });
    expect(await batch.judge([request(), request()])).toEqual([late, late]);
  });

  it("are left at once when the run is aborted", async () => {
    const controller = new AbortController();
    const hangs: RewardFunction = () => new Promise(() => undefined);
    const judged = makeRewardManager("naive", { reward: hangs }).judge([request()], controller.signal);
    controller.abort(new Error("interrupted"));
    await expect(judged).rejects.toThrow("interrupted");
  });
});

describe("reward managers", () => {
  it("dapo: the overlong buffer as numpy computes it", async () => {
    const file = join(import.meta.dirname, "..", "..", "..", "algorithms", "fixtures", "reward-reference.json");
    const { overlong } = JSON.parse(readFileSync(file, "utf8")) as {
      overlong: { response: number; longest: number; buffer: number; factor: number; penalty: number }[];
    };
    expect(overlong.length).toBeGreaterThan(4);
    for (const { response, longest, buffer, factor, penalty } of overlong) {
      const settings = { length: buffer, penaltyFactor: factor, log: true };
      expect(computeOverlongPenalty(response, longest, settings)).toBeCloseTo(penalty, 12);
      const manager = makeRewardManager("dapo", {
        reward: () => 1,
        responseLength: longest,
        overlongBuffer: settings,
      });
      const [judged] = await manager.judge([request({ responseLength: response })]);
      expect(judged).toEqual({
        score: expect.closeTo(1 + penalty, 12),
        extra: { acc: 1, overlong: penalty < 0 ? 1 : 0, overlong_reward: expect.closeTo(penalty, 12) },
        parts: [
          { name: "score", value: 1, weight: 1, by: "the reward function" },
          { name: "overlong", value: expect.closeTo(penalty, 12), weight: 1, by: "reward_model.overlong_buffer" },
        ],
      });
    }
  });

  it("dapo refuses a buffer that is longer than responses", () => {
    const overlongBuffer = { length: 20, penaltyFactor: 1, log: false };
    expect(() => makeRewardManager("dapo", { responseLength: 10, overlongBuffer })).toThrow(
      refusal("config/bad-value", "overlong_buffer.len", { received: "20" }),
    );
    expect(() => makeRewardManager("prime")).toThrow(
      refusal("config/unknown-name", "reward_model.reward_manager", {
        expected: expect.stringContaining("batch, dapo, naive"),
      }),
    );
  });

  it("batch: one call with lists; as many results as trajectories", async () => {
    const reward: BatchRewardFunction = (sources, texts, truths, extras, kwargs) => {
      expect([sources, truths, extras, kwargs]).toEqual([["a", "b"], ["7", "7"], [info, info], {}]);
      return texts.map((text, i) => (i === 0 ? text.length : { score: 2, why: "because" }));
    };
    const requests = [request({ dataSource: "a" }), request({ dataSource: "b" })];
    const options = { reward, rewardName: "computeScores of mine.ts", kwargs: {} };
    const part = { name: "score", weight: 1, by: "computeScores of mine.ts" };
    expect(await makeRewardManager("batch", options).judge(requests)).toEqual([
      { score: 6, extra: {}, parts: [{ ...part, value: 6 }] },
      { score: 2, extra: { why: "because" }, parts: [{ ...part, value: 2 }] },
    ]);
    await expect(makeRewardManager("batch", { reward: () => [1] }).judge(requests)).rejects.toThrow(
      refusal("data/bad-reward", "batch of 2 trajectories", { received: "1" }),
    );
    const single = (() => 1) as unknown as BatchRewardFunction;
    await expect(makeRewardManager("batch", { reward: single }).judge(requests)).rejects.toThrow(
      refusal("config/bad-value", "custom_reward_function"),
    );
  });
});

describe("rollouts and their rewards", () => {
  const engine = new FakeEngine({ reply: () => "#### 7", maxSequences: 2 });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const rows = ["1", "7", "3"].map((truth, i) =>
    parseRow(
      {
        data_source: "test",
        prompt: [{ role: "user", content: "q" }],
        reward_model: { ground_truth: truth },
        extra_info: { index: 9, level: i },
      },
      i,
      `f, row ${i}`,
    ),
  );
  const options = (reward: RolloutOptions["reward"]): RolloutOptions => ({
    tokenizer,
    tools: new Map(),
    multiTurn: defaultMultiTurn,
    reward,
    n: 2,
    temperature: 1,
    topP: 1,
    topK: 0,
    seed: 1,
    step: 1,
    maxPromptLength: 128,
    responseLength: 64,
    truncation: "error",
    defaultAgentLoop: "tool_agent",
  });

  it("judge the sampled text; the conversation and the row's extra_info are in extraInfo", async () => {
    const reward: RewardFunction = (source, text, truth, info) => {
      expect([source, text]).toEqual(["test", "#### 7"]);
      expect(info).toMatchObject({ index: 9, numTurns: 2, finishReason: "stop" });
      expect(info.messages).toHaveLength(2);
      return { score: truth === "7" ? 1 : 0, [`only_${truth}`]: true };
    };
    const trajectories = await runRollouts(engine, rows, { ...options(reward), returnFullPrompt: true });
    expect(trajectories.map((t) => t.reward)).toEqual([0, 0, 1, 1, 0, 0]);
    expect(new Set(trajectories.map((t) => t.uid)).size).toBe(3);
    // Extra keys are ragged: each mean is over those that have the key.
    expect(averageExtras(trajectories)).toEqual({ only_1: 1, only_7: 1, only_3: 1 });
    expect(trajectories[0]!.extraFields.full_prompt).toMatch(
      /^<\|im_start\|>user\nq<\|im_end\|>\n<\|im_start\|>assistant/,
    );
  });

  it("a manager of batches sees all of them once, in the order of rows and samples, with two places to talk", async () => {
    const batches: string[][] = [];
    const manager: RewardManager = {
      granularity: "batch",
      judge: async (requests) => {
        batches.push(requests.map((r) => r.place));
        return requests.map((_, i) => ({ score: i, extra: {} }));
      },
    };
    const trajectories = await runRollouts(engine, rows, options(manager));
    expect(batches).toHaveLength(1);
    expect(
      batches[0]!.map((place) =>
        place
          .match(/^row (\d).*sample (\d)$/)!
          .slice(1)
          .join(),
      ),
    ).toEqual(["0,0", "0,1", "1,0", "1,1", "2,0", "2,1"]);
    expect(trajectories.map((t) => t.rewards.score)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("a conversation that fails does not leave the others waiting for it", async () => {
    const manager: RewardManager = {
      granularity: "batch",
      judge: async (requests) => requests.map(() => ({ score: 1, extra: {} })),
    };
    const long = parseRow({ data_source: "test", prompt: [{ role: "user", content: "q".repeat(200) }] }, 3, "f, row 3");
    await expect(runRollouts(engine, [...rows, long], options(manager))).rejects.toThrow(
      refusal("data/prompt-too-long", "row 3 (f, row 3)"),
    );
  });

  it("a run's own registry has rewards by data_source that no other run knows", async () => {
    const own = { ...options(null), rewards: rewardFunctions.extend() };
    await expect(runRollouts(engine, rows, own)).rejects.toThrow(
      refusal("config/unknown-data-source", 'data_source "test"'),
    );
    own.rewards.register("test", () => 5);
    expect((await runRollouts(engine, rows, own)).map((t) => t.reward)).toEqual([5, 5, 5, 5, 5, 5]);
    await expect(runRollouts(engine, rows, options(null))).rejects.toThrow(
      refusal("config/unknown-data-source", 'data_source "test"'),
    );
    const managers = rewardManagers.extend();
    managers.register("mine", () => makeRewardManager("naive", { reward: () => 6 }));
    const manager = makeRewardManager("mine", {}, managers);
    expect((await runRollouts(engine, rows, options(manager))).map((t) => t.reward)).toEqual([6, 6, 6, 6, 6, 6]);
    expect(() => makeRewardManager("mine")).toThrow(
      refusal("config/unknown-name", "reward_model.reward_manager", { received: "mine" }),
    );
  });

  it("a slow judge holds up no conversation", async () => {
    let talking = 0;
    const judges: (() => void)[] = [];
    const slow = new FakeEngine({
      maxSequences: 1,
      reply: () => {
        talking++;
        return "#### 7";
      },
    });
    const running = runRollouts(
      slow,
      rows,
      options(() => new Promise((resolve) => judges.push(() => resolve(1)))),
    );
    await vi.waitFor(() => expect(talking).toBe(6));
    await vi.waitFor(() => expect(judges).toHaveLength(6));
    for (const judge of judges) judge();
    expect((await running).map((t) => t.reward)).toEqual([1, 1, 1, 1, 1, 1]);
  });
});

describe("semantic 10: the reward of a trajectory", () => {
  const ended = {
    tokenIds: Int32Array.of(5, 6, 7),
    responseMask: Uint8Array.of(0, 1, 1),
    toolRewards: [{ value: -0.5, tokenIndex: 1 }],
    turnScores: [{ value: 1.5, tokenIndex: 2 }],
    toolScore: 2,
    interactionScore: null,
    metrics: {},
    extraFields: { mark: 7 },
  } as unknown as UnjudgedTrajectory;
  const parts = { outcome: 1, length: -0.5, tools: 4, turns: 8, tokenLevel: Float64Array.of(0, 4.5, 8) };

  it("is the sum of the aggregator's values on its tokens, made once, with its parts beside it", () => {
    const seen: unknown[] = [];
    const judgement = { score: 0.25, extra: { acc: 1, why: "because" } };
    const judged = finishTrajectory(
      ended,
      judgement,
      (earned) => {
        const { responseMask, score, success, toolRewards, turnScores } = earned;
        seen.push({ responseMask, score, success, toolRewards, turnScores });
        return parts;
      },
      () => [],
    );
    const { responseMask, toolRewards, turnScores } = ended;
    expect(seen).toEqual([{ responseMask, score: 0.25, success: true, toolRewards, turnScores }]);
    expect(judged.reward).toBe(12.5);
    expect(judged.rewards).toEqual({
      score: 0.25,
      parts: [{ name: "score", value: 0.25, weight: 1, by: "the reward manager" }],
      success: true,
      toolScore: 2,
      interactionScore: null,
      ...parts,
    });
    expect(judged.extraFields).toEqual({ mark: 7, acc: 1, why: "because" });
    expect(Object.keys(judged)).not.toContain("toolScore");
  });

  it("success is acc, or a score above 0 without one", () => {
    const succeeds = (score: number, extra: Record<string, unknown>) =>
      finishTrajectory(
        ended,
        { score, extra },
        () => parts,
        () => [],
      ).rewards.success;
    expect([succeeds(1, {}), succeeds(0, {}), succeeds(1, { acc: false }), succeeds(-1, { acc: 1 })]).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  it("refuses a reward that is not a number; a judge that broke leaves nothing to learn from", () => {
    const broken = { ...parts, tokenLevel: Float64Array.of(Number.NaN, 0, 0) };
    const unusable = finishTrajectory(
      ended,
      { score: 1, extra: {} },
      () => broken,
      () => [],
    );
    expect(hasFailed(unusable)).toBe(true);
    expect(unusable).toMatchObject({ reward: 0, metrics: { reward_failed: 1 }, rewards: { score: null } });
    expect(unusable.error).toMatch(/the reward is NaN: .*received score 1, tools -0.5, turns 1.5/);
    const failed = finishTrajectory(
      ended,
      { error: "offline", extra: { rm_error: "x" } },
      () => parts,
      () => [],
    );
    expect(hasFailed(failed)).toBe(true);
    expect(failed).toMatchObject({
      reward: 0,
      error: "offline",
      rewards: { score: null, success: null, tools: 0 },
      toolRewards: [],
      turnScores: [],
      metrics: { failed: 1, reward_failed: 1 },
      extraFields: { mark: 7, rm_error: "x" },
    });
    expect([...failed.responseMask, ...failed.rewards.tokenLevel]).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

describe("tool calls in a trajectory's tokens", () => {
  const engine = new FakeEngine({ reply: () => "" });
  const tool = new CalculatorTool();
  const argument = Object.keys((tool.schema.function.parameters as { properties: object }).properties)[0]!;
  const call = (value: unknown, name = "calculator") =>
    `<tool_call>\n${JSON.stringify({ name, arguments: { [argument]: value } })}\n</tool_call>`;
  const find = (turns: string[]) => {
    const ids: number[] = [...engine.tokenize("prompt")];
    const mask: number[] = ids.map(() => 0);
    for (const turn of turns) {
      const sampled = [...engine.tokenize(`${turn}<|im_end|>`)];
      const observed = [...engine.tokenize("\nanswer")];
      ids.push(...sampled, ...observed);
      mask.push(...sampled.map(() => 1), ...observed.map(() => 0));
    }
    const trajectory = { tokenIds: Int32Array.from(ids), responseMask: Uint8Array.from(mask) } as Trajectory;
    const found = findToolCalls(trajectory, {
      engine,
      parse: getToolFormat("hermes").parse,
      schemas: [tool.schema],
      maxParallelCalls: 1,
    });
    const masked = maskToolCalls(ids.length, found);
    const text = engine.detokenize(ids.filter((_, t) => masked[t]));
    return { found, text, last: found.map((f) => engine.detokenize([ids[f.lastToken]!])) };
  };

  it("are the stretch between the model's text before and after", () => {
    const one = find([`Héllo, I think 🦙. ${call("1+1")} So far.`, "no call here"]);
    expect(one.text).toContain(call("1+1"));
    expect(one.text.trim()).toBe(call("1+1"));
    expect(one.last).toEqual(["<|im_end|>"]);
    expect(find([call("1+1")]).text).toBe(call("1+1"));
    expect(find(["nothing"]).found).toEqual([]);
  });

  it.each(thinkingTags)("do not include calls inside thinking, also if the prompt opens $open", async (tag) => {
    const { open, close } = tag;
    expect(find([`${open}maybe ${call("1+1")}${close}no`]).found).toEqual([]);
    const chatTemplate = `{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n${open}\n{% endif %}`;
    const said = [`maybe ${call("2+2")}${close}${call("1+1")}`, `no ${call("3+3")}`];
    const fake = makeFakeRollout({ reply: ({ turn }) => said[turn]!, tools: [tool], engine: { chatTemplate } });
    const [trajectory] = await fake.run();
    const found = findToolCalls(trajectory!, {
      engine: fake.engine,
      parse: getToolFormat("hermes").parse,
      schemas: [tool.schema],
      maxParallelCalls: 9,
    });
    expect(found).toMatchObject([{ valid: 1 }]);
    expect(fake.engine.detokenize(trajectory!.tokenIds.subarray(found[0]!.start, found[0]!.end))).toBe(call("1+1"));
  });

  it("are the same that the agent loop recorded", async () => {
    const said = [`Let me see: ${call("1+1")}`, "#### 2"];
    const fake = makeFakeRollout({ reply: ({ turn }) => said[turn]!, tools: [tool] });
    const [trajectory] = await fake.run();
    const recorded = trajectory!.timeline!.turns.flatMap((turn) => turn.toolCalls ?? []);
    const found = findToolCalls(trajectory!, {
      engine: fake.engine,
      parse: getToolFormat("hermes").parse,
      schemas: [tool.schema],
      maxParallelCalls: 1,
    });
    expect(recorded).toHaveLength(1);
    expect(found).toMatchObject([{ valid: 1, start: recorded[0]!.start, end: recorded[0]!.end }]);
    expect(trajectory!.responseMask[found[0]!.lastToken]).toBe(1);
  });

  it("count as valid when the tool exists and the arguments fit, up to max_parallel_calls", () => {
    const valid = (...turns: string[]) => find(turns).found.map((f) => f.valid);
    expect(valid(call("1+1"), "and", call("2"))).toEqual([1, 1]);
    expect(valid(call("1+1") + call("2"))).toEqual([1]);
    expect(valid(call("1", "search"))).toEqual([0]);
    expect(valid(call([1]))).toEqual([0]);
  });
});

it("extractFinalAnswer reads the last number after ####", () => {
  expect(["#### 1,200", "#### 5 no, #### -6.", "#### $3", "none"].map(extractFinalAnswer)).toEqual([
    "1200",
    "-6",
    null,
    null,
  ]);
});
