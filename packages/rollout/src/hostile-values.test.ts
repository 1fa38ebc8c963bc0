import { hasFailed, type Trajectory } from "@cria/core";
import { amount } from "@cria/core/testing";
import { isUsableNumber } from "@cria/episodes/internal";
import { BaseInteraction, BaseTool, defineToolSchema } from "@cria/tools";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentContext } from "./agents/agent-function.js";
import { makeFunctionAgent } from "./agents/function-agent-loop.js";
import { type AgentLoopEntry, agentLoops } from "./loops/agent-loops.js";
import { describeData, keepRecord, toPlainData } from "./plain-data.js";
import { averageExtras, makeRewardManager, type RewardFunction } from "./rewards/index.js";
import { makeFakeRollout, makeRow } from "./testing/index.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const refuse = () => {
  throw new Error("no");
};
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const circular = () => {
  const value: Record<string, unknown> = { kept: 1 };
  value.self = value;
  return value;
};

/** Values that others may give where a number, a text or an object is expected; each is made anew. */
const makers: Record<string, () => unknown> = {
  nan: () => Number.NaN,
  infinity: () => Number.POSITIVE_INFINITY,
  "1e308": () => 1e308,
  "-1e308": () => -1e308,
  bigint: () => 10n,
  "a number as text": () => "1",
  "a Number": () => Object(1),
  undefined: () => undefined,
  null: () => null,
  symbol: () => Symbol("s"),
  function: () => refuse,
  date: () => new Date(Number.NaN),
  map: () => new Map<unknown, unknown>([[{}, 1n]]),
  set: () => new Set([circular()]),
  bytes: () => new Float32Array([Number.NaN]),
  sparse: () => Array(3),
  "no prototype": () => Object.create(null),
  "a getter that throws": () => Object.defineProperty({ kept: 1 }, "bad", { get: refuse, enumerable: true }),
  "a score that throws": () => Object.defineProperty({}, "score", { get: refuse, enumerable: true }),
  "a toJSON that throws": () => ({ kept: 1, toJSON: refuse }),
  "a toJSON that is circular": () => ({ toJSON: circular }),
  "a toString that throws": () => ({ toString: refuse, valueOf: refuse }),
  circular,
  deep: () => JSON.parse("[".repeat(3000) + "]".repeat(3000)),
  proto: () => JSON.parse('{"__proto__": {"polluted": 1}}'),
  "a proxy that refuses all": () =>
    new Proxy(
      {},
      { get: refuse, ownKeys: refuse, getPrototypeOf: refuse, getOwnPropertyDescriptor: refuse, has: refuse },
    ),
  "a revoked proxy": revoked,
  "a thenable that throws": () => ({
    // biome-ignore lint/suspicious/noThenProperty: that is what is tried.
    get then() {
      return refuse();
    },
  }),
  "a promise that fails": () => {
    const failing = Promise.reject(new Error("offline"));
    // Inside of an object nobody waits for it.
    failing.catch(() => undefined);
    return failing;
  },
  "a promise that never settles": () => new Promise(() => undefined),
};
const names = Object.keys(makers);
const make = (name: string) => makers[name]!();
const text = (name: string) => `value "${name}"`;

/** Ways to deliver a value. */
const ways = ["given", "in a promise", "thrown"] as const;
function give(name: string, way: (typeof ways)[number], wrap: (value: unknown) => unknown): unknown {
  const value = make(name);
  if (way === "thrown") throw value;
  return way === "in a promise" ? Promise.resolve().then(() => wrap(value)) : wrap(value);
}
const way = fc.constantFrom(...ways);
const name = fc.constantFrom(...names);

/** Checks the invariants of every trajectory. */
function expectSound(trajectories: readonly Trajectory[], count: number): void {
  expect(trajectories).toHaveLength(count);
  for (const t of trajectories) {
    const line = JSON.stringify(t);
    expect(JSON.parse(line)).toMatchObject({ uid: t.uid, messages: JSON.parse(JSON.stringify(t.messages)) });
    expect(isUsableNumber(t.reward)).toBe(true);
    expect(t.rewards.tokenLevel.every(Number.isFinite)).toBe(true);
    for (const [metric, value] of Object.entries(t.metrics)) expect(isUsableNumber(value), metric).toBe(true);
    for (const mean of Object.values(averageExtras([t]))) expect(Number.isFinite(mean)).toBe(true);
    for (const message of t.messages) expect(typeof message.content).toBe("string");
    if (hasFailed(t)) expect(t.error).toMatch(/\w/);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  }
}

describe("the extra values of a reward", () => {
  it("are bounded, entry by entry and as a whole; short ones are kept as they are", () => {
    const kept = keepRecord({ acc: 1, note: "x".repeat(50_000_000), list: [1, { a: 2 }] });
    expect(kept).toMatchObject({ acc: 1, list: [1, { a: 2 }] });
    expect(JSON.stringify(kept).length).toBeLessThan(11_000);
    const entries = amount(100_000, 1_000_000);
    const many = Object.fromEntries(Array.from({ length: entries }, (_, i) => [`key${i}`, i]));
    const bounded = keepRecord(many);
    expect(JSON.stringify(bounded).length).toBeLessThan(250_000);
    expect(bounded["(cut)"]).toBe(`${entries - (Object.keys(bounded).length - 1)} more`);
  });

  it("reach the trajectory bounded", async () => {
    const reward: RewardFunction = () => ({ score: 1, note: "x".repeat(1_000_000) });
    const [trajectory] = await makeFakeRollout({ reply: () => "x", reward }).run();
    expect(JSON.stringify(trajectory!.extraFields).length).toBeLessThan(20_000);
  });
});

// A dump has a line for each conversation: no text of a user's code may be its size.
describe("long texts of an agent, a loop or an error reach the trajectory bounded", () => {
  const long = "x".repeat(1_000_000);
  const fail = () => {
    throw new Error(long);
  };
  const runLoop = async (loop: AgentLoopEntry) => {
    const loops = agentLoops.extend();
    loops.register("mine", loop);
    const options = { agentLoops: loops, defaultAgentLoop: "mine", reward: null };
    const [trajectory] = await makeFakeRollout({ reply: () => "x", ...options }).run();
    return trajectory!;
  };

  it("beside an agent's score", async () => {
    const agent = async ({ session }: AgentContext) => {
      await session.complete({ messages: [{ role: "user", content: "hi" }] });
      return { score: 1, note: long, kept: 1 };
    };
    const trajectory = await runLoop(makeFunctionAgent(agent));
    expect(trajectory).toMatchObject({ reward: 1, extraFields: { kept: 1 } });
    expect(JSON.stringify(trajectory).length).toBeLessThan(30_000);
  });

  it("in the output of a loop", async () => {
    const trajectory = await runLoop({
      traits: { prompt: true, tools: true, interactions: true, scores: true },
      factory: ({ promptIds }) => ({
        run: async () => ({
          tokenIds: [...promptIds, 65],
          promptLength: promptIds.length,
          responseMask: [...promptIds.map(() => 0), 1],
          rolloutLogprobs: [...promptIds.map(() => 0), -1],
          numTurns: 2,
          score: 1,
          metrics: {},
          extraFields: { note: long, kept: 1 },
        }),
      }),
    });
    expect(trajectory).toMatchObject({ reward: 1, extraFields: { kept: 1 } });
    expect(JSON.stringify(trajectory).length).toBeLessThan(30_000);
  });

  it.each([
    ["a reward", { reward: fail }],
    ["a judge", { reward: { granularity: "sample" as const, judge: fail } }],
    ["a judgement", { reward: { granularity: "sample" as const, judge: async () => [{ error: long, extra: {} }] } }],
  ])("thrown by %s", async (_, options) => {
    const [trajectory] = await makeFakeRollout({ reply: () => "x", ...options }).run();
    expect(hasFailed(trajectory!)).toBe(true);
    expect(trajectory!.error!.length).toBeLessThan(11_000);
  });

  it("thrown by an agent", async () => {
    const trajectory = await runLoop(makeFunctionAgent(fail));
    expect(hasFailed(trajectory)).toBe(true);
    expect(trajectory.error!.length).toBeLessThan(11_000);
  });
});

describe("the result of a reward function", () => {
  const shapes: Record<string, (value: unknown) => unknown> = {
    "is the value": (value) => value,
    "has it as score": (score) => ({ score }),
    "has it beside the score": (extra) => ({ score: 1, extra, kept: true }),
  };

  async function judge(reward: unknown, kind = "naive", timeoutS = 30) {
    const manager = makeRewardManager(kind, { reward: reward as RewardFunction, timeoutS });
    const warnings: string[] = [];
    const { run } = makeFakeRollout({ reply: () => "x", reward: manager, n: 2, onWarning: (w) => warnings.push(w) });
    return { trajectories: await run([makeRow(), makeRow({}, 1)]), warnings };
  }

  it("is a score or a clear error, for any value", async () => {
    await fc.assert(
      fc.asyncProperty(name, way, fc.constantFrom(...Object.keys(shapes)), async (value, how, shape) => {
        const { trajectories, warnings } = await judge(
          () => give(value, how, shapes[shape]!),
          "naive",
          value === "a promise that never settles" ? 0.02 : 30,
        );
        expectSound(trajectories, 4);
        const failed = trajectories.filter(hasFailed);
        for (const t of failed) expect(t.error, text(value)).toMatch(/the reward (function|manager)/);
        if (failed.length > 0)
          expect(warnings.join("\n")).toMatch(/row 0 \(row 0, data_source "test", uid ".+"\), sample 0: the reward/);
      }),
      { numRuns: 40, examples: names.map((value) => [value, "given", "is the value"]) },
    );
  });

  it("for one sample does not change the others, also if one call judges all", async () => {
    for (const value of names.filter((each) => !each.includes("promise"))) {
      const batch = (sources: string[]) => sources.map((_, i) => (i === 1 ? { score: make(value) } : { score: 1 }));
      const { trajectories } = await judge(batch, "batch");
      expectSound(trajectories, 4);
      expect(
        trajectories.map((t) => t.reward),
        text(value),
      ).toEqual([1, 0, 1, 1]);
    }
  });

  it("keeps the usable extra values beside the score", async () => {
    const extra = Object.defineProperty({ kept: [1, { a: 2 }], many: 5n, nothing: Number.NaN }, "bad", {
      get: refuse,
      enumerable: true,
    });
    const { trajectories } = await judge(() => ({ score: 0.5, extra, huge: 1e308 }));
    expect(trajectories[0]).toMatchObject({
      reward: 0.5,
      extraFields: {
        extra: { kept: [1, { a: 2 }], many: "5", nothing: "NaN", bad: "(cannot be read: no)" },
        huge: 1e308,
      },
    });
    expect(averageExtras(trajectories)).toEqual({});
  });

  it("1e308 twice does not become Infinity: the judge has failed, and names the place", async () => {
    const { trajectories, warnings } = await judge(() => 1e308);
    for (const t of trajectories) {
      expect(t.reward).toBe(0);
      expect(t.error).toMatch(/expected a finite number \(at most 1e\+30 in size\).*received 1e\+308/);
    }
    expect(warnings).toHaveLength(1);
  });

  it("names weights that make the score overflow", async () => {
    const { run } = makeFakeRollout({
      reply: () => "x",
      reward: () => 1e30,
      aggregate: ({ responseMask, score }) => ({
        outcome: score * 1e10,
        length: 0,
        tools: 0,
        turns: 0,
        tokenLevel: Float64Array.from(responseMask, (bit) => bit * score * 1e10),
      }),
    });
    const trajectories = await run();
    expectSound(trajectories, 1);
    expect(trajectories[0]!.error).toMatch(/the reward is \d.*received score 1e\+30, tools none, turns none/);
  });

  it("may be anything from a user's manager too", async () => {
    for (const value of names.filter((each) => !each.includes("promise"))) {
      const manager = { granularity: "sample" as const, judge: async () => [make(value) as never] };
      const { run } = makeFakeRollout({ reply: () => "x", reward: manager });
      const [t] = await run();
      expectSound([t!], 1);
      expect(t!.error, text(value)).toMatch(/the reward manager/);
    }
  });
});

const call = '<tool_call>{"name": "act", "arguments": {"x": 1}}</tool_call>';
const schema = () => defineToolSchema("act", "Acts.", { type: "object", properties: { x: { type: "number" } } });

describe("the result of a tool", () => {
  const shapes: Record<string, (value: unknown) => unknown> = {
    "is the value": (value) => value,
    "has it as response": (response) => ({ response, reward: 0, metrics: {} }),
    "has it as text": (given) => ({ response: { text: given }, reward: 0, metrics: {} }),
    "has it as image": (image) => ({ response: { text: "seen", image }, reward: 0, metrics: {} }),
    "has it as reward": (reward) => ({ response: { text: "fine" }, reward, metrics: {} }),
    "has it as metrics": (metrics) => ({ response: { text: "fine" }, reward: 0, metrics }),
    "has it as a metric": (value) => ({ response: { text: "fine" }, reward: 0, metrics: { value, one: 1 } }),
  };
  const methods = ["create", "execute", "calcReward", "release"] as const;

  it("goes into the conversation as a text, and nothing else of it", async () => {
    const cases = fc.tuple(fc.constantFrom(...methods), name, way, fc.constantFrom(...Object.keys(shapes)));
    await fc.assert(
      fc.asyncProperty(cases, async ([method, value, how, shape]) => {
        class Tool extends BaseTool {
          override async execute() {
            return { response: { text: "fine" }, reward: 0, metrics: {} };
          }
        }
        const tool = Object.assign(new Tool(schema()), {
          [method]: () => give(value, how, method === "execute" ? shapes[shape]! : (given) => given),
        });
        const { run } = makeFakeRollout({
          reply: ({ turn }) => (turn === 0 ? call : "done"),
          tools: [tool],
          reward: null,
          multiTurn: { toolTimeoutS: 0.02 },
        });
        const trajectories = await run([makeRow({ data_source: "openai/gsm8k" })]);
        expectSound(trajectories, 1);
        expect(trajectories[0]!.error, `${method}: ${text(value)}`).toBeUndefined();
        expect(trajectories[0]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
      }),
      { numRuns: 60, examples: names.map((value) => [["create", value, "in a promise", "is the value"]]) },
    );
  });
});

describe("the result of an interaction", () => {
  const shapes: Record<string, (value: unknown) => unknown> = {
    "is the value": (value) => value,
    "has it as content": (content) => ({ shouldTerminate: false, content, score: 0 }),
    "has it as score": (score) => ({ shouldTerminate: true, content: "bye", score }),
    "has it as end": (shouldTerminate) => ({ shouldTerminate, content: "on", score: 0 }),
    "has it as data": (data) => ({ shouldTerminate: true, content: "bye", score: 0, data }),
    "has it in its data": (value) => ({ shouldTerminate: true, content: "bye", score: 0, data: { value, one: 1 } }),
  };
  const methods = ["startInteraction", "generateResponse", "calculateScore", "finalizeInteraction"] as const;

  it("is a turn, or fails its own conversation with its name", async () => {
    const cases = fc.tuple(fc.constantFrom(...methods), name, way, fc.constantFrom(...Object.keys(shapes)));
    await fc.assert(
      fc.asyncProperty(cases, async ([method, value, how, shape]) => {
        class Interaction extends BaseInteraction {
          override async startInteraction() {}
          override async generateResponse() {
            return { shouldTerminate: true, content: "bye", score: 1 };
          }
          override async finalizeInteraction() {}
        }
        const interaction = Object.assign(new Interaction({}, "test"), {
          [method]: () => give(value, how, method === "generateResponse" ? shapes[shape]! : (given) => given),
        });
        const { run } = makeFakeRollout({
          reply: () => "an answer",
          interactions: [interaction],
          reward: null,
          multiTurn: { toolTimeoutS: 0.02, maxUserTurns: 2 },
        });
        const trajectories = await run();
        expectSound(trajectories, 1);
        const [t] = trajectories;
        if (hasFailed(t!)) expect(t!.error, `${method}: ${text(value)}`).toMatch(/of interaction "test": failed/);
      }),
      { numRuns: 60 },
    );
  });
});

describe("plain data", () => {
  it("of any value is JSON, and describes it, without ever throwing", async () => {
    for (const value of names) {
      const given = make(value);
      const plain = toPlainData(given);
      expect(JSON.parse(JSON.stringify(plain)), value).toEqual(plain);
      expect(describeData(given), value).toMatch(/./);
    }
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.stringify(toPlainData(value))).toBe(JSON.stringify(value));
      }),
    );
  });
});
