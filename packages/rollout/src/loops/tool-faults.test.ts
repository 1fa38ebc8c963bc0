import type { Trajectory } from "@cria/core";
import { BaseInteraction, BaseTool, defineToolSchema, type InteractionReply, type ToolResult } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeError } from "../run-with-deadline.js";
import { makeFakeRollout } from "../testing/index.js";

const call = '<tool_call>{"name": "act", "arguments": {}}</tool_call>';

class ActTool extends BaseTool {
  running = 0;
  mostRunning = 0;
  readonly events: string[] = [];
  constructor(private readonly work: (call: number, signal: AbortSignal) => unknown) {
    super(defineToolSchema("act", "Acts.", z.object({})));
  }
  private calls = 0;
  override async execute(_id: string, _parameters: object, { signal }: { signal?: AbortSignal } = {}) {
    this.mostRunning = Math.max(this.mostRunning, ++this.running);
    this.events.push("execute");
    try {
      return (await this.work(this.calls++, signal!)) as ToolResult;
    } finally {
      this.running--;
      this.events.push("ended");
    }
  }
  override async release() {
    this.events.push("release");
  }
}

/** Ends shortly after its call was aborted. */
const outlast = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => setImmediate(() => setImmediate(resolve))));
const answer = (response: ToolResult["response"]): ToolResult => ({ response, reward: 0, metrics: {} });

async function play(tool: BaseTool, turns = 1, multiTurn = {}) {
  const { run } = makeFakeRollout({ reply: ({ turn }) => (turn < turns ? call : "done"), tools: [tool], multiTurn });
  const [t] = await run();
  expect(t!.error).toBeUndefined();
  return { t: t!, told: t!.messages.filter((m) => m.role === "tool").map((m) => m.content) };
}

describe("an error of a tool", () => {
  const unreadable = Object.create(null);
  const hostile = {
    get message(): string {
      throw new Error("no");
    },
  };
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  class Odd {
    toString() {
      return "odd one";
    }
  }
  it.each<[string, unknown, string]>([
    ["without a toString", unreadable, "act failed ({})"],
    ["whose message throws", hostile, "act failed (an error that cannot be described)"],
    ["that refers to itself", circular, "act failed (an error that cannot be described)"],
    ["a plain object", { code: 7, why: "quota" }, 'act failed ({"code":7,"why":"quota"})'],
    ["an object with a message", { message: "quota" }, "act failed (quota)"],
    ["an error without a message", new TypeError(), "act failed (TypeError)"],
    ["an object with a text of its own", new Odd(), "act failed (odd one)"],
    ["a symbol", Symbol("x"), "act failed (Symbol(x))"],
    ["nothing", undefined, "act failed (undefined)"],
    ["an empty text", "", "act failed (an error without a message)"],
  ])("%s becomes a tool message", async (_, thrown, text) => {
    const { t, told } = await play(
      new ActTool(() => {
        throw thrown;
      }),
    );
    expect(told).toEqual([`error: ${text}`]);
    expect(t.metrics).toMatchObject({ tool_exception: 1 });
  });

  it("is described without ever throwing", () => {
    const trap = new Proxy(
      {},
      {
        get: () => trap,
        getPrototypeOf: () => {
          throw new Error("no");
        },
      },
    );
    expect(describeError(trap)).toMatch(/error/);
  });
});

describe("a call that takes too long", () => {
  it("is over before the same instance is called again, and before it is released", async () => {
    const tool = new ActTool(async (n, signal) => {
      if (n === 0) await outlast(signal);
      return answer({ text: `call ${n}` });
    });
    // The second call's turn and work have 2 s, and need almost none.
    const { t, told } = await play(tool, 2, { toolTimeoutS: 2 });
    expect(told).toEqual(["error: act did not answer within 2 s", "call 1"]);
    expect(tool.mostRunning).toBe(1);
    expect(tool.events).toEqual(["execute", "ended", "execute", "ended", "release"]);
    expect(t.metrics.tool_timeout).toBe(1);
    const slow = new ActTool((_, signal) => outlast(signal).then(() => answer({ text: "late" })));
    await play(slow, 1, { toolTimeoutS: 0.1 });
    expect(slow.events).toEqual(["execute", "ended", "release"]);
  });

  it("and never ends makes later calls time out; release comes all the same", async () => {
    const tool = new ActTool(() => new Promise(() => undefined));
    const { told } = await play(tool, 2, { toolTimeoutS: 0.1 });
    expect(told[1]).toBe("error: act is still busy with an earlier call");
    expect(tool.events).toEqual(["execute", "release"]);
  });
});

describe("media in an answer", () => {
  it.each<[string, ToolResult["response"], string, number]>([
    ["an image alone", { image: [{ data: "..." }] }, "[image omitted]", 1],
    [
      "a text with several",
      { text: "seen", image: [{ data: "a" }, { data: "b" }], video: [3] },
      "seen\n[2 images omitted] [video omitted]",
      3,
    ],
    ["audio", { text: "heard", audio: [1] }, "heard\n[audio omitted]", 1],
    ["what is no list", { image: "data:" as never }, "[image omitted]", 1],
  ])("%s is named and counted", async (_, response, text, count) => {
    const { t, told } = await play(new ActTool(() => answer(response)));
    expect(told).toEqual([text]);
    expect(t.metrics.tool_media_omitted).toBe(count);
  });

  it("empty lists count as none; cut-off text is not the mark", async () => {
    const none = await play(new ActTool(() => answer({ text: "fine", image: [], video: [] })));
    expect(none.told).toEqual(["fine"]);
    expect(none.t.metrics).not.toHaveProperty("tool_media_omitted");
    const long = { text: "x".repeat(1000), image: [{ data: "a" }] };
    const cut = await play(new ActTool(() => answer(long)), 1, { toolResponseTruncateSide: "right" });
    expect(cut.told[0]).toMatch(/^x{256}\(truncated\)\n\[image omitted\]$/);
  });
});

describe("the state that a tool names beside its answer", () => {
  const statesOf = ({ timeline }: Trajectory) =>
    timeline!.turns.filter(({ role }) => role === "tool").map(({ state }) => state);

  it("is on the turn, and not in the message", async () => {
    const states = ["hall", undefined, 7, "hall"];
    const tool = new ActTool((n) => ({ ...answer({ text: `seen ${n}` }), state: states[n] }));
    const { t, told } = await play(tool, 4);
    expect(told).toEqual(["seen 0", "seen 1", "seen 2", "seen 3"]);
    expect(statesOf(t)).toEqual(["hall", undefined, undefined, "hall"]);
    expect(JSON.stringify(t.messages)).not.toMatch(/hall/);
  });

  it("is the last one of a turn's calls", async () => {
    const states = ["hall", "yard", undefined];
    const tool = new ActTool((n) => ({ ...answer({ text: "seen" }), state: states[n] }));
    const { run } = makeFakeRollout({
      reply: ({ turn }) => (turn < 1 ? call.repeat(3) : "done"),
      tools: [tool],
      multiTurn: { maxParallelCalls: 3 },
    });
    const [t] = await run();
    expect(statesOf(t!)).toEqual(["yard"]);
  });
});

describe("an interaction's last words and data", () => {
  class Talking extends BaseInteraction {
    constructor(private readonly replies: readonly Partial<InteractionReply>[]) {
      super({}, "test");
    }
    private turn = 0;
    override async startInteraction() {}
    override async generateResponse(): Promise<InteractionReply> {
      return { shouldTerminate: false, content: "go on", score: 0, ...this.replies[this.turn++] };
    }
    override async finalizeInteraction() {}
  }
  const circular: Record<string, unknown> = {};
  circular.self = circular;

  it("are in the record, without data that are numbers", async () => {
    const interaction = new Talking([
      { data: { hints: 1, why: "close", list: [1, { a: 2 }], circular, big: "x".repeat(20_000), many: 5n } },
      { shouldTerminate: true, content: "Well done.", data: { verdict: null } },
    ]);
    const { run } = makeFakeRollout({ reply: () => "an answer", interactions: [interaction] });
    const [t] = await run();
    expect(t!.error).toBeUndefined();
    expect(t!.metrics["interaction/test/hints"]).toBe(1);
    expect(t!.extraFields).toMatchObject({
      interactionFinalText: "Well done.",
      interactionData: [
        {
          turn: 1,
          why: "close",
          list: [1, { a: 2 }],
          circular: { self: "(refers to itself)" },
          many: "5",
          big: expect.stringMatching(/^"x{9999} \(cut\)$/),
        },
        { turn: 2, verdict: null },
      ],
    });
    expect(t!.messages.at(-1)!.role).toBe("assistant");
    expect(() => JSON.stringify(t!.extraFields)).not.toThrow();
  });

  it("add nothing if they are empty", async () => {
    const { run } = makeFakeRollout({
      reply: () => "x",
      multiTurn: { maxUserTurns: 1 },
      interactions: [new Talking([])],
    });
    const [t] = await run();
    expect(t!.extraFields).not.toHaveProperty("interactionFinalText");
    expect(t!.extraFields).not.toHaveProperty("interactionData");
  });
});
