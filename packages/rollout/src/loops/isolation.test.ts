import { type ChatMessage, hasFailed } from "@cria/core";
import {
  BaseInteraction,
  BaseTool,
  defineToolSchema,
  type ReplyKwargs,
  type StartKwargs,
  type ToolResult,
} from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { copyData, freezeData } from "../copy-data.js";
import { registerAgentLoop, ToolAgentLoop } from "../index.js";
import { makeFakeRollout, makeRow } from "../testing/index.js";

/** Writes into everything that it can reach. */
class Vandal extends BaseInteraction {
  readonly seen: unknown[] = [];
  override async startInteraction(_id: string, kwargs: StartKwargs = {}) {
    this.seen.push(structuredClone({ start: kwargs }));
    const messages = kwargs.messages as ChatMessage[];
    messages[0]!.content = "REWRITTEN";
    messages.push({ role: "system", content: "PUSHED" });
    (kwargs.deep as { used: number[] }).used.push(1);
    (kwargs.ground_truth as { answer: string }).answer = "WRONG";
  }
  override async generateResponse(_id: string, given: readonly ChatMessage[], { deep }: ReplyKwargs = {}) {
    const messages = given as ChatMessage[];
    for (const message of messages) message.content = "REWRITTEN";
    messages.push({ role: "user", content: "PUSHED" });
    (deep as { used: number[] }).used.push(2);
    return { shouldTerminate: messages.length > 8, content: "go on", score: 0 };
  }
  override async finalizeInteraction() {}
}

class GreedyTool extends BaseTool {
  readonly seen: [phase: string, used: number][] = [];
  constructor() {
    super(defineToolSchema("take", "Takes.", z.object({ list: z.array(z.number()) })));
  }
  private use(phase: string, kwargs: Record<string, unknown>) {
    const own = kwargs.own as { used: number };
    this.seen.push([phase, own.used]);
    own.used++;
  }
  override async create(instanceId: string, { createKwargs = {} }: { createKwargs?: Record<string, unknown> } = {}) {
    this.use("create", createKwargs);
    return { instanceId };
  }
  override async execute(_id: string, parameters: Record<string, unknown>, options = {}): Promise<ToolResult> {
    this.use("execute", options);
    (parameters.list as number[]).push(99);
    return { response: { text: "taken" }, reward: 0, metrics: {} };
  }
  override async calcReward(_id: string, kwargs = {}) {
    this.use("calc_reward", kwargs);
    return 0;
  }
  override async release(_id: string, kwargs = {}) {
    this.use("release", kwargs);
  }
}

const own = () => ({ own: { used: 0 } });
const makeRows = (shared?: unknown) => [
  makeRow({
    reward_model: { ground_truth: { answer: "7" } },
    extra_info: {
      interaction_kwargs: { deep: { used: [] }, shared },
      tools_kwargs: {
        take: { create_kwargs: own(), execute_kwargs: own(), calc_reward_kwargs: own(), release_kwargs: own() },
      },
    },
  }),
];
const call = '<tool_call>{"name": "take", "arguments": {"list": [1]}}</tool_call>';

describe("conversations are kept apart", () => {
  it("changes of messages and kwargs by tools and interactions reach no other conversation, and not the dataset", async () => {
    const [tool, vandal] = [new GreedyTool(), new Vandal({}, "test")];
    const truths: unknown[] = [];
    const { engine, options, run } = makeFakeRollout({
      reply: ({ turn }) => (turn === 0 ? call : `answer ${turn}`),
      tools: [tool],
      interactions: [vandal],
      n: 3,
      concurrency: 1,
      reward: (_source, _text, truth, info) => {
        truths.push(structuredClone(truth));
        (truth as { answer: string }).answer = "BY THE REWARD";
        (info.messages as ChatMessage[])[0]!.content = "BY THE REWARD";
        (info.interaction_kwargs as Record<string, unknown>).deep = "BY THE REWARD";
        return 1;
      },
    });
    const rows = makeRows();
    const before = structuredClone(rows);
    const first = await run(rows);
    const second = await run(rows);
    expect(rows).toEqual(before);
    for (const t of [...first, ...second]) {
      expect(hasFailed(t)).toBe(false);
      expect(JSON.stringify(t.messages)).not.toMatch(/REWRITTEN|PUSHED|REWARD/);
      expect(engine.detokenize(t.tokenIds)).not.toMatch(/REWRITTEN|PUSHED|99/);
      expect(t.metrics.tokenization_mismatch).toBeUndefined();
      // The tokens equal those of an honest environment.
      expect([...t.tokenIds]).toEqual([...first[0]!.tokenIds]);
      expect(options.tokenizer.render(t.messages, [tool.schema])).toBe(`${engine.detokenize(t.tokenIds)}\n`);
    }
    // Each of the six conversations gets the row's original kwargs.
    expect(tool.seen.filter(([phase]) => phase === "create")).toEqual(Array(6).fill(["create", 0]));
    expect(tool.seen).toHaveLength(6 * 4);
    for (const [, used] of tool.seen) expect(used).toBe(0);
    for (const { start } of vandal.seen as { start: StartKwargs }[])
      expect(start).toMatchObject({ messages: before[0]!.prompt, deep: { used: [] }, ground_truth: { answer: "7" } });
    expect(truths).toEqual(Array(6).fill({ answer: "7" }));
  });

  it("kwargs of one conversation stay the same objects from call to call", async () => {
    class Counting extends Vandal {
      readonly counts: number[] = [];
      override async generateResponse(_id: string, _messages: readonly ChatMessage[], { deep }: ReplyKwargs = {}) {
        this.counts.push((deep as { used: number[] }).used.push(3));
        return { shouldTerminate: this.counts.length > 1, content: "go on", score: 0 };
      }
    }
    const counting = new Counting({}, "test");
    await makeFakeRollout({ reply: () => "x", interactions: [counting] }).run(makeRows());
    expect(counting.counts).toEqual([2, 3]);
  });

  it("functions and class instances of a user's dataset are shared, as they are", async () => {
    class Connection {
      open = true;
    }
    const connection = new Connection();
    const shared: unknown[] = [];
    class Looking extends Vandal {
      override async startInteraction(_id: string, kwargs: StartKwargs = {}) {
        shared.push(kwargs.shared);
      }
      override async generateResponse() {
        return { shouldTerminate: true, content: "", score: 0 };
      }
    }
    const answer = () => 42;
    const trajectories = await makeFakeRollout({ reply: () => "x", interactions: [new Looking({}, "test")], n: 2 }).run(
      makeRows({ connection, answer }),
    );
    expect(trajectories.map((t) => t.error)).toEqual([undefined, undefined]);
    const [a, b] = shared as { connection: Connection; answer: () => number }[];
    expect(a).not.toBe(b);
    for (const one of [a, b]) {
      expect(one!.connection).toBe(connection);
      expect(one!.answer).toBe(answer);
    }
  });

  it("a custom loop gets a row of its own, and the record of a failed conversation too", async () => {
    registerAgentLoop("row-writer", (context) => ({
      run: async (sampling, row) => {
        row.prompt[0]!.content = "REWRITTEN";
        row.extraInfo.index = "REWRITTEN";
        if (row.index === 1) throw new Error("failed");
        return new ToolAgentLoop(context).run(sampling, row);
      },
    }));
    const rows = [makeRow({}, 0), makeRow({}, 1)];
    const before = structuredClone(rows);
    const [, failed] = await makeFakeRollout({ reply: () => "x", defaultAgentLoop: "row-writer" }).run(rows);
    expect(rows).toEqual(before);
    failed!.messages[0]!.content = "REWRITTEN";
    expect(rows).toEqual(before);
  });

  it("tool schemas, which all conversations share, cannot be written to", async () => {
    class SchemaWriter extends GreedyTool {
      override async execute(): Promise<ToolResult> {
        this.schema.function.description = "REWRITTEN";
        return { response: { text: "written" }, reward: 0, metrics: {} };
      }
    }
    const { engine, run } = makeFakeRollout({
      reply: ({ turn }) => (turn === 0 ? call : "done"),
      tools: [new SchemaWriter()],
      n: 2,
      concurrency: 1,
    });
    for (const t of [...(await run(makeRows())), ...(await run(makeRows()))]) {
      expect(t.metrics.tool_exception).toBe(1);
      expect(engine.detokenize(t.tokenIds)).toContain("Takes.");
      expect(engine.detokenize(t.tokenIds)).not.toContain('"REWRITTEN"');
    }
  });
});

describe("copyData", () => {
  it("copies plain data at any depth, and keeps shared references", () => {
    const inner = { when: new Date(5), bytes: new Uint8Array([1, 2]), buffer: Buffer.from("ab") };
    const given = {
      inner,
      again: inner,
      map: new Map([["k", { list: [inner] }]]),
      set: new Set([1]),
      bare: Object.assign(Object.create(null), { x: 1 }),
      big: 5n,
      nothing: undefined,
      self: null as unknown,
    };
    given.self = given;
    const copied = copyData(given);
    expect(copied).toEqual(given);
    expect(copied.self).toBe(copied);
    expect(copied.inner).toBe(copied.again);
    expect(copied.map.get("k")!.list[0]).toBe(copied.inner);
    expect(Buffer.isBuffer(copied.inner.buffer)).toBe(true);
    expect(Object.getPrototypeOf(copied.bare)).toBeNull();
    copied.inner.bytes[0] = 9;
    copied.inner.buffer[0] = 9;
    copied.set.add(2);
    copied.map.get("k")!.list.push(inner);
    expect([inner.bytes[0], inner.buffer[0], given.set.size]).toEqual([1, 97, 1]);
    expect(given.map.get("k")!.list).toHaveLength(1);
  });

  it("a key called __proto__ stays a key", () => {
    const copied = copyData(JSON.parse('{"__proto__": {"polluted": true}}'));
    expect(Object.keys(copied)).toEqual(["__proto__"]);
    expect((copied as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it("freezeData makes plain data read-only at any depth", () => {
    const given = { list: [{ x: 1 }], when: new Date(0) };
    given.when.setTime(7);
    expect(freezeData(given)).toBe(given);
    expect(() => given.list.push({ x: 2 })).toThrow(TypeError);
    expect(() => Object.assign(given.list[0]!, { x: 2 })).toThrow(TypeError);
    given.when.setTime(8);
  });
});
