import type { Trajectory } from "@cria/core";
import type { FakeEngine } from "@cria/core/testing";
import { BaseInteraction, BaseTool, defineToolSchema, type InteractionReply, type ToolResult } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { placeAsEarned } from "../rewards/place-as-earned.js";
import { makeFakeRollout, makeRow } from "../testing/index.js";
import type { RolloutOptions } from "./rollout-options.js";
import { exceedsTokens, truncateText } from "./truncate-text.js";

type Execute = (parameters: Record<string, unknown>) => Promise<ToolResult> | ToolResult;

class TestTool extends BaseTool {
  constructor(private readonly work: Execute = () => answer("42")) {
    super(defineToolSchema("lookup", "Looks up a key.", z.object({ key: z.string() })));
  }
  override async execute(_id: string, parameters: Record<string, unknown>) {
    return this.work(parameters);
  }
}

class TestInteraction extends BaseInteraction {
  constructor(
    private readonly replies: readonly Partial<InteractionReply>[],
    private readonly score = 0,
  ) {
    super({}, "test");
  }
  private readonly turns = new Map<string, number>();
  override async startInteraction(id: string) {
    this.turns.set(id, 0);
  }
  override async generateResponse(id: string): Promise<InteractionReply> {
    const turn = this.turns.get(id)!;
    this.turns.set(id, turn + 1);
    return { shouldTerminate: false, content: "go on", score: 0, ...this.replies[turn] };
  }
  override async calculateScore() {
    return this.score;
  }
  override async finalizeInteraction(id: string) {
    this.turns.delete(id);
  }
}

const answer = (text: string, reward = 0): ToolResult => ({ response: { text }, reward, metrics: {} });
const call = (args: unknown = { key: "a" }, name = "lookup") =>
  `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`;
/** Calls the tool once, then answers. */
const callThenAnswer = ({ turn }: { turn: number }) => (turn === 0 ? `let me see ${call()}` : "it is 42");

const response = (t: Trajectory) => t.tokenIds.slice(t.promptLength);
const masked = (engine: FakeEngine, t: Trajectory, bit: 0 | 1) =>
  engine.detokenize([...t.tokenIds].filter((_, i) => i >= t.promptLength && t.responseMask[i] === bit));

describe("semantics of agent loops", () => {
  it("semantic 1: mask 1 for sampled tokens, calls and end-of-turn tokens included; 0 and logprob 0 elsewhere", async () => {
    const { engine, run } = makeFakeRollout({ reply: callThenAnswer, tools: [new TestTool()] });
    const [t] = await run();
    expect(masked(engine, t!, 1)).toBe(`let me see ${call()}<|im_end|>it is 42<|im_end|>`);
    expect(masked(engine, t!, 0)).toBe(
      "\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    );
    expect([...t!.responseMask.slice(0, t!.promptLength)].every((bit) => bit === 0)).toBe(true);
    const scores = (await engine.score([{ tokenIds: t!.tokenIds }]))[0]!.logprobs;
    t!.rolloutLogprobs.forEach((logprob, i) => {
      expect(logprob).toBe(t!.responseMask[i] ? scores[i] : 0);
    });
  });

  it("semantic 1: train_on_tool_calls=false takes the calls' text out, and nothing else", async () => {
    const { engine, run } = makeFakeRollout({
      reply: ({ turn }) => (turn === 0 ? `see ${call()} and ${call({ key: "b" })} ok` : "done"),
      tools: [new TestTool()],
      multiTurn: { trainOnToolCalls: false },
    });
    const [t] = await run();
    expect(masked(engine, t!, 1)).toBe("see  ok<|im_end|>done<|im_end|>");
    const { start, end, count } = t!.timeline!.turns[0]!.toolCalls!;
    expect(engine.detokenize(t!.tokenIds.slice(start, end))).toBe(`${call()} and ${call({ key: "b" })}`);
    expect(count).toBe(2);
    t!.rolloutLogprobs.forEach((logprob, i) => {
      if (!t!.responseMask[i]) expect(logprob).toBe(0);
    });
  });

  it("semantic 2: inserts the template's text after the end-of-turn token; a cut turn gets nothing", async () => {
    const whole = makeFakeRollout({ reply: callThenAnswer, tools: [new TestTool()] });
    const [t] = await whole.run();
    const text = whole.engine.detokenize(response(t!));
    expect(text).toContain("</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>");
    const cut = makeFakeRollout({
      reply: () => ({ text: `cut ${call()}`, end: false }),
      tools: [new TestTool()],
    });
    const [c] = await cut.run();
    expect(cut.engine.detokenize(response(c!))).toBe(`cut ${call()}`);
    expect(c).toMatchObject({ finishReason: "length", metrics: { tool_calls: 0 } });
  });

  it("semantic 3: response_length is the budget of the whole trajectory; a text that does not fit ends it and is left out", async () => {
    const runWith = async (responseLength: number) => {
      const budgets: number[] = [];
      const { engine, run } = makeFakeRollout({
        reply: ({ turn, options }) => {
          budgets.push(options.maxTokens);
          return callThenAnswer({ turn });
        },
        tools: [new TestTool(() => answer("9".repeat(50), 0.5))],
        responseLength,
      });
      return { t: (await run())[0]!, budgets, engine };
    };
    const { t: whole } = await runWith(1000);
    const afterTool = whole.timeline!.turns[1]!.end - whole.promptLength;
    // No token is left to reply: the tool's answer is omitted, but the call ran and earned its reward.
    const { t, engine, budgets } = await runWith(afterTool);
    expect(budgets).toEqual([afterTool]);
    expect(t.finishReason).toBe("length");
    expect(masked(engine, t, 0)).toBe("");
    expect(t.messages.map((m) => m.role)).toEqual(["user", "assistant"]);
    expect(t.toolRewards).toEqual([{ value: 0.5, tokenIndex: t.tokenIds.length - 1 }]);
    // With one more token, the model gets its second turn within the remaining budget.
    const more = await runWith(afterTool + 1);
    expect(more.budgets).toEqual([afterTool + 1, 1]);
    expect(masked(more.engine, more.t, 1)).toMatch(/i$/);
    expect(more.t.tokenIds.length - more.t.promptLength).toBe(afterTool + 1);
  });

  it("semantic 3: a user's text that does not fit is left out, its score kept", async () => {
    const { engine, run } = makeFakeRollout({
      reply: () => "an answer",
      interactions: [new TestInteraction([{ content: "x".repeat(1_000_000), score: 0.25 }])],
      responseLength: 100,
    });
    const [t] = await run();
    expect(t).toMatchObject({ finishReason: "length", reward: 0.25 });
    expect(engine.detokenize(response(t!))).toBe("an answer<|im_end|>");
  });

  it.each([
    ["a call beyond max_parallel_calls", `${call()}${call()}`, "only 1 calls at a time", "too_many_calls"],
    [
      "an unknown tool",
      call({}, "nothing"),
      'error: unknown tool "nothing"; the tools are: lookup',
      "tool_unknown_tool",
    ],
    ["bad JSON", "<tool_call>{name}</tool_call>", "invalid call", "tool_invalid_call"],
    ["a schema violation", call({ key: 3 }), "invalid arguments", "tool_invalid_arguments"],
    ["an exception", call({ key: "throw" }), "lookup failed (broken)", "tool_exception"],
    ["a timeout", call({ key: "hang" }), "did not answer within 0.1 s", "tool_timeout"],
    ["an answer that is not text", call({ key: "number" }), "gave no text", "tool_bad_response"],
    ["no answer at all", call({ key: "nothing" }), "gave no text", "tool_bad_response"],
    ["a reward that is not a number", call({ key: "nan" }), "fine", "tool_bad_reward"],
  ])("semantic 4: %s becomes a tool message and a metric, and ends nothing", async (_, said, message, metric) => {
    const tool = new TestTool(({ key }) => {
      if (key === "throw") throw new Error("broken");
      if (key === "hang") return new Promise(() => undefined);
      if (key === "number") return answer(7 as never);
      if (key === "nothing") return undefined as never;
      return answer("fine", key === "nan" ? Number.NaN : 0);
    });
    const multiTurn = { toolTimeoutS: said.includes("hang") ? 0.1 : 60 };
    const { run } = makeFakeRollout({ reply: ({ turn }) => (turn === 0 ? said : "done"), tools: [tool], multiTurn });
    const [t] = await run();
    const told = t!.messages.filter((m) => m.role === "tool").map((m) => m.content);
    expect(told.at(-1)).toContain(message);
    expect(t!.metrics[metric]).toBe(1);
    expect(t).toMatchObject({ finishReason: "stop", reward: 0 });
    expect(t!.messages.at(-1)).toEqual({ role: "assistant", content: "done" });
  });

  it("semantic 5: the score of a reply that ended the episode lands on the last sampled token", async () => {
    const { run } = makeFakeRollout({
      reply: ({ turn }) => `answer ${turn}`,
      interactions: [new TestInteraction([{ score: 0.25 }, { score: 1, shouldTerminate: true, content: "well done" }])],
    });
    const [t] = await run();
    const [first, second] = t!.timeline!.turns.filter((turn) => turn.role === "assistant");
    expect(t!.turnScores).toEqual([
      { value: 0.25, tokenIndex: first!.end - 1 },
      { value: 1, tokenIndex: second!.end - 1 },
    ]);
    for (const { tokenIndex } of t!.turnScores) expect(t!.responseMask[tokenIndex]).toBe(1);
    expect(t!.turnScores[1]!.tokenIndex).toBe(t!.responseMask.lastIndexOf(1));
    expect(t!.messages.at(-1)!.role).toBe("assistant");
  });

  it("semantic 6: a trajectory without a sampled token is kept, with reward 0 and an empty mask", async () => {
    const { run } = makeFakeRollout({ reply: () => ({ text: "", end: false }), reward: () => 1 });
    const [t] = await run();
    expect(t).toMatchObject({ reward: 0, finishReason: "length", turnScores: [], toolRewards: [] });
    expect(t!.responseMask.includes(1)).toBe(false);
    expect(t!.tokenIds.length).toBe(t!.promptLength);
  });

  it("semantic 7: a prompt that is too long follows data.truncation; error names the row", async () => {
    const rows = [makeRow({ prompt: [{ role: "user", content: "long ".repeat(20) }] }, 3)];
    const make = (truncation: "error" | "left") =>
      makeFakeRollout({ reply: () => "ok", maxPromptLength: 20, truncation });
    await expect(make("error").run(rows)).rejects.toMatchObject({
      code: "data/prompt-too-long",
      subject: expect.stringContaining("row 3"),
    });
    const { engine, run } = make("left");
    const [t] = await run(rows);
    expect(t!.promptLength).toBe(20);
    expect(engine.detokenize(t!.tokenIds.slice(0, 20))).toMatch(/<\|im_start\|>assistant\n$/);
    expect(t!.metrics).toMatchObject({ tokenization_unchecked: 1 });
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("semantic 9: a mismatch is reported with its place and counted, and nothing crashes", async () => {
    let sampled = 0;
    const { run } = makeFakeRollout({
      reply: (context) => {
        sampled++;
        return callThenAnswer(context);
      },
      tools: [new TestTool()],
      engine: {
        chatTemplate:
          "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content if m.role != 'assistant' or loop.last else 'FORGOTTEN' }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      },
    });
    // The base conversation detects that such a template cannot be incremental, before anything is sampled.
    await expect(run()).rejects.toMatchObject({
      code: "config/template-cannot-answer",
      received: expect.stringContaining("FORGOTTEN"),
    });
    expect(sampled).toBe(0);

    const warnings: string[] = [];
    const last = makeFakeRollout({
      reply: callThenAnswer,
      n: 3,
      onWarning: (warning) => warnings.push(warning),
      tools: [new TestTool()],
      engine: {
        chatTemplate:
          "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | replace('let me', 'LET ME') }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      },
    });
    const [m] = await last.run();
    expect(m!.metrics.tokenization_mismatch).toBe(1);
    // There is one warning for all of them, which names the place.
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/row 0, template: ".*LET ME[\s\S]*row 0, rollout: {2}".*let me/);
    expect(m!.extraFields.tokenization).toMatchObject({
      kind: "mismatch",
      expected: expect.stringContaining("LET ME"),
      received: expect.stringContaining("let me"),
    });
  });

  it("semantic 9: a turn that the model ended with another end token is no mismatch", async () => {
    const { run } = makeFakeRollout({ reply: () => ({ text: "bye<|endoftext|>", end: false }) });
    const [t] = await run();
    expect(t).toMatchObject({ finishReason: "stop", metrics: { tokenization_other_end: 1 } });
    expect(t!.metrics.tokenization_mismatch).toBeUndefined();
  });

  it("semantic 9: the assistant's part of the generation prompt is part of its message", async () => {
    const { engine, options, run } = makeFakeRollout({
      reply: ({ turn }) => `thought ${turn}</think>${callThenAnswer({ turn })}`,
      tools: [new TestTool()],
      engine: {
        chatTemplate:
          "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
      },
    });
    const [t] = await run();
    expect(t!.messages[1]!.content).toMatch(/^<think>\nthought 0/);
    expect(masked(engine, t!, 1)).not.toContain("<think>");
    expect(`${engine.detokenize(t!.tokenIds)}\n`).toBe(options.tokenizer.render(t!.messages));
    expect(t!.metrics).not.toHaveProperty("tokenization_mismatch");
    expect(t!.metrics).not.toHaveProperty("tokenization_unchecked");
  });

  it("semantic 10: the reward function judges, else calculateScore, else calcReward; steps are added by weight", async () => {
    class Judging extends TestTool {
      override async calcReward() {
        return 0.5;
      }
    }
    const tools = [new Judging(() => answer("x", 2))];
    const interactions = [new TestInteraction([{ score: 4, shouldTerminate: true }], 0.75)];
    // Weights like those of reward_model.aggregation.
    const aggregate: RolloutOptions["aggregate"] = (earned) => {
      const parts = placeAsEarned(earned);
      const tokenLevel = new Float64Array(earned.responseMask.length);
      tokenLevel[earned.responseMask.lastIndexOf(1)] = 10 * parts.outcome + 100 * parts.tools + 1000 * parts.turns;
      return { ...parts, tokenLevel };
    };
    const base = { reply: callThenAnswer, aggregate };
    const rewardOf = async (more: Partial<Parameters<typeof makeFakeRollout>[0]>) =>
      (await makeFakeRollout({ ...base, ...more }).run())[0]!.reward;
    expect(await rewardOf({ tools, interactions, reward: () => ({ score: 1, note: "x" }) })).toBe(10 + 200 + 4000);
    expect(await rewardOf({ tools, interactions, reward: null })).toBe(7.5 + 200 + 4000);
    expect(await rewardOf({ tools, reward: null })).toBe(5 + 200);
    await expect(rewardOf({ tools: [new TestTool()], reward: null })).rejects.toMatchObject({
      code: "config/unknown-data-source",
    });
  });

  it("semantic 11: a conversation is one sequence that grows; nothing starts again at a tool's answer", async () => {
    const { engine, run } = makeFakeRollout({ reply: callThenAnswer, tools: [new TestTool()] });
    const [t] = await run();
    expect(engine.counts.created).toBe(1);
    expect(engine.counts.prefillTokens).toBe(t!.metrics.prefill_tokens);
    // Every token but the last sampled one was evaluated, once.
    expect(t!.metrics.prefill_tokens! + t!.metrics.decode_tokens!).toBe(t!.tokenIds.length + 1);
  });
});

describe("truncateText", () => {
  const { engine } = makeFakeRollout({ reply: () => "" });
  const cut = (text: string, maxTokens: number, side: "left" | "middle" | "right", maxChars = 0) =>
    truncateText(text, { maxTokens, maxChars, side }, engine).text;

  it("names the side that is cut away, counts tokens, and splits no character", () => {
    expect(cut("abcdef", 4, "right")).toBe("abcd(truncated)");
    expect(cut("abcdef", 4, "left")).toBe("(truncated)cdef");
    expect(cut("abcdef", 4, "middle")).toBe("ab(truncated)ef");
    expect(cut("abcd", 4, "middle")).toBe("abcd");
    expect(cut("ééé", 3, "right")).toBe("é(truncated)");
    expect(cut("🎈🎈🎈", 100, "right", 3)).toBe("🎈(truncated)");
    expect(cut("", 4, "middle")).toBe("");
  });

  it("takes time by the limit, not by the text", () => {
    const text = "lorem ipsum ".repeat(100_000);
    let tokenized = 0;
    const counting = {
      tokenize: (piece: string) => {
        tokenized += piece.length;
        return engine.tokenize(piece, { special: false });
      },
      detokenize: (ids: ArrayLike<number>) => engine.detokenize(ids),
    };
    const { text: short, truncated } = truncateText(text, { maxTokens: 256, maxChars: 0, side: "middle" }, counting);
    expect(truncated).toBe(true);
    expect(short).toBe(`${text.slice(0, 128)}(truncated)${text.slice(-128)}`);
    expect(exceedsTokens(text, 1000, counting)).toBe(true);
    expect(tokenized).toBeLessThan(10_000);
  });
});
