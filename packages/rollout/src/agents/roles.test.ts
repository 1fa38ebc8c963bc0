import { type ChatMessage, hasFailed, type Trajectory } from "@cria/core";
import { describe, expect, it } from "vitest";
import { agentLoops } from "../loops/agent-loops.js";
import { defaultAgentOptions } from "../loops/agent-options.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/index.js";
import type { AgentContext, AgentFunction } from "./agent-function.js";
import { makeFunctionAgent } from "./function-agent-loop.js";

const user = (content: string): ChatMessage => ({ role: "user", content });

async function run(
  agent: (context: AgentContext) => unknown,
  reply: FakeRolloutOptions["reply"] = ({ options }) => `said ${options.seed}`,
): Promise<Trajectory & { texts: Record<string, string[]> }> {
  const loops = agentLoops.extend();
  loops.register("mine", makeFunctionAgent(agent as AgentFunction<never>));
  const rollout = makeFakeRollout({
    reply,
    reward: null,
    defaultAgentLoop: "mine",
    agentLoops: loops,
    agent: defaultAgentOptions,
    onWarning: () => undefined,
  });
  const [trajectory] = await rollout.run([makeRow({ extra_info: { row: {} } })]);
  const texts: Record<string, string[]> = {};
  for (const { start, end, call } of trajectory!.timeline!.turns) {
    const role = call?.request.role as string | undefined;
    if (role === undefined) continue;
    texts[role] ??= [];
    texts[role].push(rollout.engine.detokenize(trajectory!.tokenIds.subarray(start, end)));
  }
  return { ...trajectory!, texts };
}

/** Each role is asked twice; both begin with the same message. */
async function play({ session }: AgentContext) {
  const talks: Record<string, ChatMessage[]> = { x: [user("move")], o: [user("move")] };
  for (let round = 0; round < 2; round++)
    await Promise.all(
      Object.entries(talks).map(async ([role, messages]) => {
        const { message } = await session.complete({ messages, role });
        messages.push(message, user(`${role}, on`));
      }),
    );
}

describe("roles that the model plays in one episode", () => {
  it("have answers of their own, also to the same messages", async () => {
    const { texts } = await run(async (context) => {
      await play(context);
      return 1;
    });
    expect(texts.x).toHaveLength(2);
    expect(texts.o).toHaveLength(2);
    expect(new Set([...texts.x!, ...texts.o!]).size).toBe(4);
  });

  it("go on behind their own answers where both said the same", async () => {
    for (const order of [
      ["x", "o"],
      ["o", "x"],
    ]) {
      const { timeline, segments, texts } = await run(
        async ({ session }) => {
          const said: Record<string, ChatMessage> = {};
          for (const role of order) said[role] = (await session.complete({ messages: [user("move")], role })).message;
          for (const role of order) await session.complete({ messages: [user("move"), said[role]!, user("on")], role });
          return 1;
        },
        () => "2",
      );
      expect(texts.x).toHaveLength(2);
      const firsts = segments!.filter(({ parent }) => parent === 0);
      const rolesOf = ({ start, end }: { start: number; end: number }) =>
        timeline!.turns.flatMap((turn) =>
          turn.call && turn.start >= start && turn.end <= end ? [turn.call.request.role] : [],
        );
      expect(firsts.map(rolesOf).sort()).toEqual([
        ["o", "o"],
        ["x", "x"],
      ]);
    }
  });

  it("have a reward each, on the last token that each said", async () => {
    for (const give of [
      async (context: AgentContext) => {
        await play(context);
        return { rewards: { x: 1, o: -0.5 }, rounds: 2 };
      },
      async (context: AgentContext) => {
        await play(context);
        context.session.reward({ x: 1, o: -0.5 });
        return { score: 0, rounds: 2 };
      },
    ]) {
      const { turnScores, timeline, reward, rewards, extraFields, error } = await run(give);
      expect(error).toBeUndefined();
      const ends = (role: string) =>
        timeline!.turns.filter(({ call }) => call?.request.role === role).map(({ end }) => end - 1);
      expect(turnScores).toEqual([
        { value: 1, tokenIndex: Math.max(...ends("x")) },
        { value: -0.5, tokenIndex: Math.max(...ends("o")) },
      ]);
      expect(rewards).toMatchObject({ score: 0, turns: 0.5 });
      expect(reward).toBe(0.5);
      expect(extraFields).toEqual(expect.objectContaining({ rounds: 2 }));
      expect(extraFields.rewards).toBeUndefined();
    }
  });

  it("may have a score of the episode beside them, and a reward for a role that never came to speak", async () => {
    const { rewards, turnScores, error } = await run(async ({ session }) => {
      await session.complete({ messages: [user("move")], role: "x" });
      return { score: 2, rewards: { x: 1, o: -1 } };
    });
    expect(error).toBeUndefined();
    expect(rewards).toMatchObject({ score: 2, outcome: 2, turns: 1 });
    expect(turnScores.map(({ value }) => value)).toEqual([1]);
  });

  it.each([
    ["a role that played and has none", { x: 1 }],
    ["another spelling", { X: 1, O: -1 }],
    ["no number", { x: 1, o: "-1" }],
    ["a list", [1, -1]],
  ])("fail the episode by %s", async (_, rewards) => {
    const trajectory = await run(async (context) => {
      await play(context);
      return { rewards };
    });
    expect(hasFailed(trajectory)).toBe(true);
    expect(trajectory.turnScores).toEqual([]);
  });

  it("have names that fit metrics", async () => {
    const codes: string[] = [];
    await run(async ({ session }) => {
      for (const role of ["", "a b", "a/b", "a".repeat(65), 3 as unknown as string])
        await session.complete({ messages: [user("move")], role }).catch(({ code }) => codes.push(code));
      for (const rewards of [{ "a/b": 1 }, { x: Number.NaN }] as Record<string, number>[])
        try {
          session.reward(rewards);
        } catch (error) {
          codes.push((error as { code: string }).code);
        }
      await session.complete({ messages: [user("move")], role: "player_1-b" });
      return 1;
    });
    expect(codes).toEqual(Array(7).fill("chat/bad-request"));
  });
});
