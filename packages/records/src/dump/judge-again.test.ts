import { FakeEngine } from "@cria/core/testing";
import { type BatchRewardFunction, makeRewardManager, type RewardAggregator, type RewardFunction } from "@cria/rollout";
import { placeAsEarned } from "@cria/rollout/internal";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import type { BaseTool } from "@cria/tools";
import { defineToolSchema, BaseTool as Tool } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeTrajectories } from "./describe-trajectories.js";
import type { DumpLine } from "./dump-line.js";
import { judgeAgain } from "./judge-again.js";

class SearchTool extends Tool {
  constructor() {
    super(defineToolSchema("search", "Searches.", z.object({ query: z.string() })));
  }
  override async execute(_id: string, { query }: { query?: string }) {
    return { response: { text: `found ${query}` }, reward: 0.5, metrics: {} };
  }
  override async calcReward() {
    return 0.125;
  }
}

const call = (name: string, given: object) => `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;
const said = [`I look.${call("search", { query: "a" })}${call("search", { q: 1 })}`, call("find", {}), "done"];

/** Conversations with calls, dumped as a run dumps them; `truth` is in `extra_info` too. */
async function converse(reward: RewardFunction, aggregate: RewardAggregator, isGuided = false) {
  const tools: BaseTool[] = [new SearchTool()];
  const teacher = new FakeEngine({ reply: ({ turn }) => said[turn]!, contextSize: 4096 });
  const { engine, options, run } = makeFakeRollout({
    reply: ({ turn }) => said[turn]!,
    choose: ({ number }) => (isGuided && number === 1 ? { engine: teacher, sampledBy: "teacher" } : null),
    tools,
    n: 2,
    multiTurn: { maxParallelCalls: 2 },
    reward,
    aggregate,
  });
  const rows = ["x", "yy"].map((truth, i) =>
    makeRow({ reward_model: { ground_truth: truth }, extra_info: { told: truth.length } }, i),
  );
  const trajectories = await run(rows);
  const context = { step: 3, rows, tools: options.tools, engine };
  const lines = JSON.parse(JSON.stringify(describeTrajectories(trajectories, context))) as DumpLine[];
  return { lines, rows: new Map(rows.map((row) => [row.uid, row])), trajectories };
}

/** A point for each valid call, on its turn's last token, and a tenth on every token of a call. */
const countCalls: RewardAggregator = (earned) => {
  const placed = placeAsEarned(earned);
  const tokenLevel = placed.tokenLevel.map((value, t) => value + (earned.toolCallMask[t] ? 0.1 : 0));
  for (const { value, tokenIndex } of earned.toolCalls) tokenLevel[tokenIndex]! += value;
  return { ...placed, tokenLevel };
};

describe("judging a dump again", () => {
  it("by the same reward gives the same lines: rewards on tokens, step rewards, calls and parts", async () => {
    const reward: RewardFunction = (_, text, truth, info) => ({
      score: text.length + String(truth).length + info.numTurns + info.toolScore! + Number(info.told),
      seen: info.messages.length + info.toolRewards.length,
    });
    const { lines, rows } = await converse(reward, countCalls);
    const manager = makeRewardManager("naive", { reward });
    const judged = await judgeAgain(lines, { manager, aggregate: countCalls, rows });
    expect(lines[0]!.token_level_rewards.filter((value) => value > 1.05)).not.toEqual([]);
    for (const [i, { line, hasRow }] of judged.entries()) {
      const { before, ...rest } = JSON.parse(JSON.stringify(line)) as DumpLine;
      expect(rest).toEqual(lines[i]);
      expect(before).toMatchObject({ reward: lines[i]!.reward, extra: lines[i]!.extra });
      expect(hasRow).toBe(true);
    }
  });

  it("gives the policy nothing for a teacher's turn: no mask, no calls and no step rewards", async () => {
    const { lines, rows } = await converse(() => 1, countCalls, true);
    const [line] = lines as [DumpLine];
    const [first, second] = line.turns.filter(({ role }) => role === "assistant");
    expect([first!.sampled_by, second!.sampled_by]).toEqual(["teacher", undefined]);
    expect(line.tool_rewards.map((entry) => entry!.token_index >= second!.start)).not.toContain(false);
    const manager = makeRewardManager("naive", { reward: () => 1 });
    const [again] = await judgeAgain([line], { manager, aggregate: countCalls, rows });
    expect(again!.line.token_level_rewards).toEqual(line.token_level_rewards);
    // The mask of a conversation whose judge failed is made from its turns.
    const failed = { ...line, error: "no judge", metrics: { ...line.metrics, reward_failed: 1 } };
    const [made] = await judgeAgain([failed], { manager, aggregate: countCalls, rows });
    const at = (t: number) => made!.line.response_mask[t];
    expect([at(first!.start), at(first!.end - 1), at(second!.start), at(second!.end - 1)]).toEqual([0, 0, 1, 1]);
  });

  it("knows the row's extra_info only where the data still has the row", async () => {
    const { lines, rows } = await converse(() => 1, placeAsEarned);
    const [[uid, row]] = [...rows] as [[string, typeof rows extends Map<string, infer R> ? R : never]];
    rows.set(uid, { ...row, groundTruth: "another" });
    const reward: RewardFunction = (_, __, truth, info) => (info.told === undefined ? -1 : String(truth).length);
    const judged = await judgeAgain(lines, {
      manager: makeRewardManager("naive", { reward }),
      aggregate: placeAsEarned,
      rows,
    });
    expect(judged.map(({ line, hasRow }) => [line.score, hasRow])).toEqual([
      [-1, false],
      [-1, false],
      [2, true],
      [2, true],
    ]);
  });

  it("asks a manager of batches once, and keeps the segments of an agent's conversations", async () => {
    const { lines, rows } = await converse(() => 1, placeAsEarned);
    const segments = [{ start: 0, end: lines[1]!.token_ids.length, parent: -1, messages: lines[1]!.messages }];
    lines[1]!.segments = segments;
    const batches: number[] = [];
    const reward: BatchRewardFunction = (sources) => {
      batches.push(sources.length);
      return sources.map((_, i) => i);
    };
    const manager = makeRewardManager("batch", { reward });
    const judged = await judgeAgain(lines, { manager, aggregate: placeAsEarned, rows });
    expect(batches).toEqual([4]);
    expect(judged.map(({ line }) => line.score)).toEqual([0, 1, 2, 3]);
    expect(judged[1]!.line.segments).toEqual(segments);
    expect(judged[1]!.trajectory!.segments).toEqual(segments);
  });

  it.each<[string, (line: DumpLine) => Partial<DumpLine>]>([
    ["response_mask", ({ response_mask }) => ({ response_mask: response_mask.slice(1) })],
    ["response_mask[0]", ({ response_mask }) => ({ response_mask: [1, ...response_mask.slice(1)] })],
    ["token_ids[1]", ({ token_ids }) => ({ token_ids: token_ids.with(1, 0.5) })],
    ["rollout_logprobs", () => ({ rollout_logprobs: [-1] })],
    ["turn_scores[0].token_index", () => ({ turn_scores: [{ value: 1, token_index: 0 }] })],
    ["tool_rewards[0].value", () => ({ tool_rewards: [{ value: 1e40, token_index: 0 }] })],
    ["segments", ({ messages }) => ({ segments: [{ start: 0, end: 3, parent: -1, messages }] })],
    ["num_turns", () => ({ num_turns: -1 })],
  ])("refuses a line with a wrong %s, and names it", async (key, change) => {
    const { lines, rows } = await converse(() => 1, placeAsEarned);
    const manager = makeRewardManager("naive", { reward: () => 1 });
    const judging = judgeAgain([{ ...lines[0]!, ...change(lines[0]!) }], { manager, aggregate: placeAsEarned, rows });
    const subject = `conversation 0 of ${lines[0]!.uid}, ${key}`;
    await expect(judging).rejects.toMatchObject({ code: "data/bad-dump", subject });
  });

  it("ends when it is aborted, also while a judge is silent", async () => {
    const { lines, rows } = await converse(() => 1, placeAsEarned);
    const stop = new AbortController();
    const reward: RewardFunction = () => {
      stop.abort(new Error("enough"));
      return new Promise(() => undefined);
    };
    const manager = makeRewardManager("naive", { reward });
    const judging = judgeAgain(lines, { manager, aggregate: placeAsEarned, rows, signal: stop.signal });
    await expect(judging).rejects.toThrow("enough");
  });
});
