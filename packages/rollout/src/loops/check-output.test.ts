import { describe, expect, it } from "vitest";
import {
  type AgentLoopContext,
  type AgentLoopOutput,
  agentLoops,
  registerAgentLoop,
  runRollouts,
  type SamplingParams,
} from "../index.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/index.js";

type Output = (context: AgentLoopContext, sampling: SamplingParams) => unknown;

/** Runs rollouts of a loop that returns the given output. */
async function play(output: Output, more: Partial<FakeRolloutOptions> = {}) {
  registerAgentLoop("mine", (context) => ({
    run: async (sampling) => (await output(context, sampling)) as AgentLoopOutput,
  }));
  const rollout = makeFakeRollout({ reply: () => "hello", defaultAgentLoop: "mine", ...more });
  const [trajectory] = await rollout.run();
  return { ...rollout, t: trajectory! };
}

/** Prepends as many zeros to values of a response as the prompt has tokens. */
const after = ({ promptIds }: AgentLoopContext, response: readonly number[]) => [
  ...new Array<number>(promptIds.length).fill(0),
  ...response,
];

/** "hi", then an observation, then "yo" and the end of the turn: the five fields that a loop must return. */
const five = (context: AgentLoopContext) => ({
  tokenIds: [...context.promptIds, ...context.engine.tokenize("hi__yo<|im_end|>")],
  promptLength: context.promptIds.length,
  responseMask: after(context, [1, 1, 0, 0, 1, 1, 1]),
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
    const { t } = await play((context) => ({
      ...five(context),
      rolloutLogprobs: after(context, [-1, -2, -9, -9, -3, -4, -5]),
    }));
    expect([...t.rolloutLogprobs.slice(t.promptLength)]).toEqual([-1, -2, 0, 0, -3, -4, -5]);
    expect(t.metrics.rescored_tokens).toBeUndefined();
  });

  it("that failed trains on nothing", async () => {
    const { t } = await play((context) => ({ ...five(context), error: "out of luck" }));
    expect(t).toMatchObject({ error: "out of luck", metrics: { failed: 1 } });
    expect(t.responseMask.includes(1)).toBe(false);
  });

  it("gets all settings of its sampling", async () => {
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
  it.each<[title: string, more: unknown, field: string | RegExp, value?: string]>([
    ["nothing", undefined, "output", "undefined"],
    ["a list", [], "output"],
    ["no tokenIds", { tokenIds: undefined }, "tokenIds"],
    ["an id beyond the vocabulary", { tokenIds: [99_999_999] }, "tokenIds[0]", "99999999"],
    ["a negative id", { tokenIds: [5, -1] }, "tokenIds[1]", "-1"],
    ["an id that is not whole", { tokenIds: [1.5] }, "tokenIds[0]", "1.5"],
    ["ids that are no numbers", { tokenIds: [1n] }, "tokenIds[0]"],
    ["a list of nothing, as long as one may be", { tokenIds: new Array(2 ** 32 - 1) }, "tokenIds[0]"],
    ["no promptLength", { promptLength: undefined }, "promptLength"],
    ["a prompt longer than all tokens", { promptLength: 999 }, "promptLength", "999"],
    ["more tokens than it may", { tokenIds: new Int32Array(3000), promptLength: 0 }, "tokenIds", "3000 tokens"],
    ["more than the context holds", { tokenIds: new Int32Array(4097), promptLength: 4090 }, "tokenIds", "4097"],
    ["a mask of the response alone", { responseMask: [1, 1, 0, 0, 1, 1, 1] }, "responseMask", "7 values"],
    [
      "a mask of other numbers",
      (context: AgentLoopContext) => ({ responseMask: after(context, [2, 1, 0, 0, 1, 1, 1]) }),
      /, responseMask\[\d+\]$/,
      "2",
    ],
    [
      "a prompt to be trained on",
      (context: AgentLoopContext) => ({ responseMask: after(context, [1, 1, 0, 0, 1, 1, 1]).fill(1, 3, 5) }),
      "responseMask[3]",
      "1",
    ],
    [
      "a NaN logprob",
      (context: AgentLoopContext) => ({ rolloutLogprobs: after(context, [0, 0, 0, 0, 0, Number.NaN, 0]) }),
      /, rolloutLogprobs\[\d+\]$/,
      "NaN",
    ],
    ["a short list of logprobs", { rolloutLogprobs: [0] }, "rolloutLogprobs", "1 values"],
    ["null for logprobs", { rolloutLogprobs: null }, "rolloutLogprobs"],
    ["a reward at no token", { toolRewards: [{ value: 1, tokenIndex: 1e6 }] }, "toolRewards[0].tokenIndex", "1000000"],
    ["a score at a token not sampled", { turnScores: [{ value: 1, tokenIndex: 2 }] }, "turnScores[0].tokenIndex", "2"],
    ["a NaN score", { turnScores: [{ value: Number.NaN, tokenIndex: 0 }] }, "turnScores[0].value", "NaN"],
    ["rewards that are no list", { toolRewards: 3 }, "toolRewards", "3"],
    ["an infinite tool score", { toolScore: Number.POSITIVE_INFINITY }, "toolScore", "Infinity"],
    ["no numTurns", { numTurns: undefined }, "numTurns"],
    ["no metrics", { metrics: undefined }, "metrics"],
    ["a metric that is not a number", { metrics: { depth: "2" } }, "metrics.depth", "2"],
    ["messages of nobody", { messages: [{ role: "robot", content: "" }] }, "messages[0].role", "robot"],
    ["messages without text", { messages: [{ role: "user" }] }, "messages[0].content"],
    ["a finish reason of its own", { finishReason: "done" }, "finishReason", "done"],
    ["fields that JSON cannot hold", { extraFields: cyclic }, "extraFields", "circular"],
    ["a state that is no text", { turns: [{ ...turn, state: 3 as never }] }, "turns[0].state", "3"],
    [
      "a call without its request",
      { turns: [{ ...turn, call: { messages: 1, sibling: 0 } as never }] },
      "turns[0].call.request",
    ],
    ["a turn beyond the tokens", { turns: [{ ...turn, end: 999 }] }, "turns[0].end", "999"],
    ["a turn that ends before it starts", { turns: [{ ...turn, start: 3 }] }, "turns[0].end", "2"],
    ["segments with a hole", { segments: [{ start: 0, end: 1, parent: -1, messages: [] }] }, "segments"],
    [
      "a segment that follows itself",
      { segments: [{ start: 0, end: 1, parent: 0, messages: [] }] },
      "segments[0].parent",
      "0",
    ],
    [
      "a call of no function",
      { messages: [{ role: "assistant", content: "", tool_calls: [{}] }] },
      "messages[0].tool_calls[0].function",
    ],
    ["an error that is no text", { error: new Error("x") }, "error"],
  ])("that returns %s ends the run, with its name, row and field", async (_, more, field, value = "") => {
    const broken = play((context) => {
      const given = typeof more === "function" ? more(context) : more;
      return typeof given === "object" && !Array.isArray(given) ? { ...five(context), ...given } : given;
    });
    const place = 'agent loop "mine", row 0, ';
    await expect(broken).rejects.toMatchObject({
      code: "config/bad-agent-loop",
      subject: typeof field === "string" ? place + field : expect.stringMatching(field),
      received: expect.stringContaining(value),
    });
  });

  it("gives a copy of its numbers; a loop of Cria's gives the record as it is", async () => {
    const tokenIds = Int32Array.of(1, 2, 3);
    const output = { tokenIds, promptLength: 3, responseMask: [0, 0, 0], numTurns: 1, metrics: {} };
    const { t: mine } = await play(() => output);
    expect(mine.tokenIds).toEqual(tokenIds);
    expect(mine.tokenIds).not.toBe(tokenIds);
    const loops = agentLoops.extend();
    loops.register("ours", { ...loops.get("tool_agent"), factory: () => ({ run: async () => output }) });
    const ours = makeFakeRollout({ reply: () => "", agentLoops: loops, defaultAgentLoop: "ours" });
    expect((await ours.run())[0]!.tokenIds).toBe(tokenIds);
  });

  it("rewards where nothing was sampled are dropped, as for every trajectory without a sampled token", async () => {
    const { t } = await play((context) => ({
      ...five(context),
      tokenIds: context.promptIds,
      responseMask: after(context, []),
      toolRewards: [{ value: 1, tokenIndex: 0 }],
    }));
    expect(t).toMatchObject({ toolRewards: [], reward: 0 });
  });
});
