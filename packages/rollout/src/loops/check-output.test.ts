import { ConfigError } from "@cria/core";
import { describe, expect, it } from "vitest";
import {
  type AgentLoopContext,
  type AgentLoopOutput,
  registerAgentLoop,
  runRollouts,
  type SamplingParams,
} from "../index.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/index.js";

type Output = (context: AgentLoopContext, sampling: SamplingParams) => unknown;

/** Rollouts of a loop that returns what the test says. */
async function play(output: Output, more: Partial<FakeRolloutOptions> = {}) {
  registerAgentLoop("mine", (context) => ({
    run: async (sampling) => (await output(context, sampling)) as AgentLoopOutput,
  }));
  const rollout = makeFakeRollout({ reply: () => "hello", defaultAgentLoop: "mine", ...more });
  const [trajectory] = await rollout.run();
  return { ...rollout, t: trajectory! };
}

/** "hi", then an observation, then "yo" and the end of the turn: the five fields that a loop must return. */
const responseOf = ({ engine }: AgentLoopContext) => [...engine.tokenize("hi__yo<|im_end|>")];
const five = (context: AgentLoopContext) => ({
  promptIds: context.promptIds,
  responseIds: responseOf(context),
  responseMask: [1, 1, 0, 0, 1, 1, 1],
  numTurns: 4,
  metrics: { depth: 2 },
});

describe("an agent loop of the user's", () => {
  it("must return five fields; the others have defaults, and the policy tells the logprobs", async () => {
    const { engine, t } = await play(five, { temperature: 0.7 });
    expect(t.error).toBeUndefined();
    expect(t).toMatchObject({ finishReason: "stop", numTurns: 4, turnScores: [], toolRewards: [] });
    expect([...t.responseMask.slice(t.promptLength)]).toEqual([1, 1, 0, 0, 1, 1, 1]);
    expect(t.messages).toEqual([
      { role: "user", content: "hi" },
      { role: "assistant", content: "hi" },
      { role: "assistant", content: "yo" },
    ]);
    const [scored] = await engine.score([{ tokenIds: t.tokenIds }]);
    t.rolloutLogprobs.forEach((logprob, i) => {
      expect(logprob).toBe(t.responseMask[i] ? scored!.logprobs[i] : 0);
    });
    expect(t.metrics).toMatchObject({ depth: 2, rescored_tokens: 5 });
    expect(t.extraFields).toEqual({});
  });

  it("asks for logprobs at the temperature of the sampling, greedy at 1", async () => {
    for (const [temperature, expected] of [
      [0.7, 0.7],
      [0, 1],
    ] as const) {
      const asked: unknown[] = [];
      const { options, engine } = makeFakeRollout({ reply: () => "", defaultAgentLoop: "mine", temperature });
      const score = engine.score.bind(engine);
      engine.score = (sequences, given) => {
        asked.push(given);
        return score(sequences, given);
      };
      registerAgentLoop("mine", (context) => ({ run: async () => five(context) }));
      await runRollouts(engine, [makeRow()], options);
      expect(asked).toEqual([expect.objectContaining({ temperature: expected })]);
    }
  });

  it("keeps logprobs that it has, where tokens were sampled", async () => {
    const { t } = await play((context) => ({ ...five(context), responseLogprobs: [-1, -2, -9, -9, -3, -4, -5] }));
    expect([...t.rolloutLogprobs.slice(t.promptLength)]).toEqual([-1, -2, 0, 0, -3, -4, -5]);
    expect(t.metrics.rescored_tokens).toBeUndefined();
  });

  it("that failed trains on nothing", async () => {
    const { t } = await play((context) => ({ ...five(context), error: "out of luck" }));
    expect(t).toMatchObject({ error: "out of luck", metrics: { failed: 1 } });
    expect(t.responseMask.includes(1)).toBe(false);
  });

  it("gets all that shapes its sampling", async () => {
    const seen: SamplingParams[] = [];
    const keep = (context: AgentLoopContext, sampling: SamplingParams) => {
      seen.push(sampling);
      return five(context);
    };
    await play(keep, { minP: 0.1, stop: ["x"], maxTokensPerTurn: 9, topK: 3 });
    await play(keep);
    expect(seen).toMatchObject([
      { minP: 0.1, stop: ["x"], maxTokensPerTurn: 9, topK: 3 },
      { minP: 0, stop: [], maxTokensPerTurn: null, topK: 0 },
    ]);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const turn = { role: "assistant", start: 0, end: 2, startedAt: 1, endedAt: 2 };
  it.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /, output: [\s\S]*an object[\s\S]*undefined/],
    ["a list", [], /, output: /],
    ["no promptIds", { promptIds: undefined }, /promptIds: [\s\S]*a list of token ids/],
    [
      "an id beyond the vocabulary",
      { responseIds: [99_999_999] },
      /responseIds\[0\][\s\S]*from 0 to 262[\s\S]*99999999/,
    ],
    ["a negative id", { promptIds: [5, -1] }, /promptIds\[1\]/],
    ["an id that is not whole", { responseIds: [1.5] }, /responseIds\[0\]/],
    [
      "more tokens than it may",
      { responseIds: new Int32Array(3000) },
      /responseIds: [\s\S]*at most 2048[\s\S]*3000 tokens/,
    ],
    ["more than the context holds", { promptIds: new Int32Array(4090) }, /promptIds: [\s\S]*at most 4096/],
    ["a short mask", { responseMask: [1] }, /responseMask: [\s\S]*as long as responseIds \(7\)[\s\S]*1 values/],
    [
      "a mask of other numbers",
      { responseMask: [2, 1, 0, 0, 1, 1, 1] },
      /responseMask\[0\][\s\S]*0 or 1[\s\S]*received: 2/,
    ],
    [
      "a NaN logprob",
      { responseLogprobs: [0, 0, 0, 0, 0, Number.NaN, 0] },
      /responseLogprobs\[5\][\s\S]*finite[\s\S]*NaN/,
    ],
    ["a short list of logprobs", { responseLogprobs: [0] }, /responseLogprobs: [\s\S]*as long as responseIds/],
    ["null for logprobs", { responseLogprobs: null }, /responseLogprobs: /],
    [
      "a reward at no token",
      { toolRewards: [{ value: 1, tokenIndex: 1e6 }] },
      /toolRewards\[0\]\.tokenIndex[\s\S]*below 7[\s\S]*1000000/,
    ],
    [
      "a score at a token not sampled",
      { turnScores: [{ value: 1, tokenIndex: 2 }] },
      /turnScores\[0\]\.tokenIndex[\s\S]*mask 1[\s\S]*2, whose mask is 0/,
    ],
    ["a NaN score", { turnScores: [{ value: Number.NaN, tokenIndex: 0 }] }, /turnScores\[0\]\.value[\s\S]*NaN/],
    ["rewards that are no list", { toolRewards: 3 }, /toolRewards: [\s\S]*a list/],
    ["an infinite tool score", { toolScore: Number.POSITIVE_INFINITY }, /toolScore: [\s\S]*Infinity/],
    ["no numTurns", { numTurns: undefined }, /numTurns: [\s\S]*a whole number/],
    ["no metrics", { metrics: undefined }, /metrics: [\s\S]*an object/],
    [
      "a metric that is not a number",
      { metrics: { depth: "2" } },
      /metrics\.depth: [\s\S]*finite number[\s\S]*received: 2/,
    ],
    [
      "messages of nobody",
      { messages: [{ role: "robot", content: "" }] },
      /messages\[0\]\.role[\s\S]*assistant[\s\S]*robot/,
    ],
    ["messages without text", { messages: [{ role: "user" }] }, /messages\[0\]\.content/],
    [
      "a finish reason of its own",
      { finishReason: "done" },
      /finishReason: [\s\S]*stop, length, tool_calls, aborted[\s\S]*done/,
    ],
    ["fields that JSON cannot hold", { extraFields: cyclic }, /extraFields: [\s\S]*circular/],
    ["a turn beyond the response", { turns: [{ ...turn, end: 8 }] }, /turns\[0\]\.end[\s\S]*below 8/],
    [
      "a turn that ends before it starts",
      { turns: [{ ...turn, start: 3 }] },
      /turns\[0\]\.end[\s\S]*at least its start \(3\)/,
    ],
    ["an error that is no text", { error: new Error("x") }, /error: [\s\S]*a text/],
  ])("that returns %s ends the run, with its name, row and field", async (_, more, message) => {
    const broken = play((context) =>
      typeof more === "object" && !Array.isArray(more) ? { ...five(context), ...more } : more,
    );
    await expect(broken).rejects.toThrow(ConfigError);
    await expect(broken).rejects.toThrow(/agent loop "mine", row 0, /);
    await expect(broken).rejects.toThrow(message);
  });

  it("rewards where nothing was sampled are dropped, as for every trajectory without a sampled token", async () => {
    const { t } = await play((context) => ({
      ...five(context),
      responseIds: [],
      responseMask: [],
      toolRewards: [{ value: 1, tokenIndex: 0 }],
    }));
    expect(t).toMatchObject({ toolRewards: [], reward: 0 });
  });
});
