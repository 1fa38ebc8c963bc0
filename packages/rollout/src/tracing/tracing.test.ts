import { BaseTool, defineToolSchema } from "@cria/tools";
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { AgentFunction } from "../agents/agent-function.js";
import { makeFunctionAgent } from "../agents/function-agent-loop.js";
import { agentLoops } from "../loops/agent-loops.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/fake-rollout.js";
import { openTracer } from "./open-tracer.js";
import type { Tracer } from "./tracer.js";

const exporter = new InMemorySpanExporter();
/** Set by a test: processors are the user's, and may throw. */
let isBroken = false;
const broken = {
  onStart: () => {
    if (isBroken) throw new Error("no disk");
  },
  onEnd: () => {
    if (isBroken) throw new Error("no disk");
  },
  forceFlush: async () => undefined,
  shutdown: async () => undefined,
};
let tracer: Tracer;

beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter), broken] });
  trace.setGlobalTracerProvider(provider);
  tracer = await openTracer();
});
beforeEach(() => {
  exporter.reset();
  isBroken = false;
});
afterAll(() => {
  trace.disable();
  context.disable();
});

class SearchTool extends BaseTool {
  /** The span in which it ran. */
  spans: (string | undefined)[] = [];
  constructor() {
    super(defineToolSchema("search", "Searches.", z.object({ query: z.string() })));
  }
  override async execute(_id: string, { query }: { query?: string }) {
    this.spans.push(trace.getActiveSpan()?.spanContext().spanId);
    if (query === "down") throw new Error("offline");
    return { response: { text: `found ${query}` }, reward: 0.5, metrics: {} };
  }
}

const call = (query: string) => `<tool_call>{"name": "search", "arguments": {"query": "${query}"}}</tool_call>`;
const said = [`${call("ok")}${call("down")}`, "done"];

const idOf = (span: ReadableSpan) => span.spanContext().spanId;
const traceOf = (span: ReadableSpan) => span.spanContext().traceId;
const byName = (spans: readonly ReadableSpan[], name: string) => spans.filter((span) => span.name.startsWith(name));
const time = ([seconds, nanos]: readonly [number, number]) => seconds * 1e3 + nanos / 1e6;

/** Two samples of a conversation of two turns and two calls. */
function converse(more: Partial<FakeRolloutOptions> = {}) {
  const tool = new SearchTool();
  const fake = makeFakeRollout({
    reply: ({ turn }) => said[turn]!,
    tools: [tool],
    n: 2,
    multiTurn: { maxParallelCalls: 2 },
    reward: () => 0.25,
    tracer,
    ...more,
  });
  return { ...fake, tool };
}

describe("traces", () => {
  it("are one an episode: invoke_agent, and below it a chat for each turn and an execute_tool for each call", async () => {
    const { run, tool, engine } = converse();
    const trajectories = await run();
    const spans = exporter.getFinishedSpans();
    expect(spans).toHaveLength(2 * 5);
    const roots = byName(spans, "invoke_agent");
    expect(new Set(spans.map(traceOf)).size).toBe(2);
    for (const [sample, trajectory] of trajectories.entries()) {
      const root = roots.find(({ attributes }) => attributes["cria.sample"] === sample)!;
      expect(root.parentSpanContext).toBeUndefined();
      expect(root.name).toBe("invoke_agent tool_agent");
      expect(root.attributes).toMatchObject({
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "tool_agent",
        "gen_ai.provider.name": "cria",
        "gen_ai.conversation.id": `test/0/1/${sample}`,
        "gen_ai.usage.output_tokens": trajectory.metrics.decode_tokens,
        "gen_ai.response.finish_reasons": ["stop"],
        "cria.reward": trajectory.reward,
        "cria.score": 0.25,
        "cria.turns": 4,
      });
      const own = spans.filter((span) => traceOf(span) === traceOf(root) && span !== root);
      for (const span of own) {
        expect(span.parentSpanContext?.spanId).toBe(idOf(root));
        expect(span.attributes["gen_ai.conversation.id"]).toBe(root.attributes["gen_ai.conversation.id"]);
        expect(time(span.startTime)).toBeGreaterThanOrEqual(time(root.startTime));
      }
      const chats = byName(own, "chat ");
      expect(chats).toHaveLength(2);
      const output = chats.map(({ attributes }) => Number(attributes["gen_ai.usage.output_tokens"]));
      expect(output[0]! + output[1]!).toBe(trajectory.responseMask.reduce((a, b) => a + b, 0));
      // All that the model read: the prompt, then also the first turn and the answers of the tools.
      const input = chats.map(({ attributes }) => Number(attributes["gen_ai.usage.input_tokens"]));
      expect(input[0]).toBe(trajectory.promptLength);
      expect(input[1]! + output[1]!).toBe(trajectory.tokenIds.length);
      expect(chats[0]!.attributes).toMatchObject({
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": engine.info.path.split("/").at(-1),
        "gen_ai.request.temperature": 1,
        "gen_ai.response.finish_reasons": ["stop"],
        "cria.queue_seconds": 0,
        "cria.prefill_seconds": 0,
        "cria.decode_seconds": 0,
      });
      const calls = byName(own, "execute_tool search");
      expect(calls.map(({ attributes }) => attributes["gen_ai.tool.name"])).toEqual(["search", "search"]);
      const [failed] = calls.filter(({ status }) => status.code === SpanStatusCode.ERROR);
      expect(failed!.attributes["error.type"]).toBe("exception");
      // The tool's own spans belong to its call.
      for (const span of calls) expect(tool.spans).toContain(idOf(span));
    }
  });

  it("leave samples unchanged, and do not exist without a tracer", async () => {
    const traced = await converse().run();
    expect(exporter.getFinishedSpans()).not.toEqual([]);
    exporter.reset();
    const plain = await converse({ tracer: undefined }).run();
    expect(exporter.getFinishedSpans()).toEqual([]);
    const strip = (trajectories: typeof plain) =>
      trajectories.map(({ tokenIds, rolloutLogprobs, reward, messages }) => ({
        tokenIds,
        rolloutLogprobs,
        reward,
        messages,
      }));
    expect(strip(plain)).toEqual(strip(traced));
  });

  it("last as long as their conversations, without the time of the judge; a judge that fails marks them", async () => {
    let ended = 0;
    const reward = async () => {
      ended = Date.now();
      await new Promise((resolve) => setTimeout(resolve, 50));
      throw new Error("no judge");
    };
    const [trajectory] = await converse({ n: 1, reward }).run();
    const [root] = byName(exporter.getFinishedSpans(), "invoke_agent");
    expect(root!.status).toMatchObject({ code: SpanStatusCode.ERROR, message: trajectory!.error });
    expect(root!.attributes["error.type"]).toBe("judge_failed");
    expect(time(root!.endTime)).toBeLessThanOrEqual(ended + 1);
  });

  it("of refilled conversations are traces of their own", async () => {
    let asked = 0;
    const reward = () => {
      asked++;
      if (asked === 1) throw new Error("once");
      return 1;
    };
    await converse({ n: 1, reward, onFailure: "refill" }).run();
    const roots = byName(exporter.getFinishedSpans(), "invoke_agent");
    expect(roots.map(({ attributes }) => attributes["gen_ai.conversation.id"])).toEqual(["test/0/1/0", "test/0/1/0/1"]);
    expect(new Set(roots.map(traceOf)).size).toBe(2);
  });

  it("of agents that call the model themselves have their calls, and their clients' spans", async () => {
    const loops = agentLoops.extend();
    const agent: AgentFunction<never> = async ({ session }) => {
      const own = trace.getTracer("client").startSpan("fetch");
      own.end();
      await session.complete({ messages: [{ role: "user", content: "hi" }] });
      await Promise.all([1, 2].map((n) => session.complete({ messages: [{ role: "user", content: `sub ${n}` }] })));
      return 1;
    };
    loops.register("mine", makeFunctionAgent(agent));
    await converse({ n: 1, defaultAgentLoop: "mine", agentLoops: loops, reward: null, reply: () => "yes" }).run([
      makeRow(),
    ]);
    const spans = exporter.getFinishedSpans();
    const [root] = byName(spans, "invoke_agent mine");
    expect(byName(spans, "chat ")).toHaveLength(3);
    for (const span of spans)
      if (span !== root) expect([traceOf(span), span.parentSpanContext?.spanId]).toEqual([traceOf(root!), idOf(root!)]);
    expect(byName(spans, "fetch")).toHaveLength(1);
  });

  it("end with the error that ends a run", async () => {
    const { run, engine } = converse({ n: 1 });
    const create = engine.createSequence.bind(engine);
    engine.createSequence = () => {
      const sequence = create();
      sequence.generate = () => Promise.reject(new RangeError("broken"));
      return sequence;
    };
    const [trajectory] = await run();
    expect(trajectory!.error).toMatch(/broken/);
    const spans = exporter.getFinishedSpans();
    expect(byName(spans, "chat ")[0]!.attributes["error.type"]).toBe("RangeError");
    expect(byName(spans, "invoke_agent")[0]!.attributes["error.type"]).toBe("episode_failed");
  });

  it("that cannot be exported disturb no rollout", async () => {
    isBroken = true;
    const [trajectory] = await converse({ n: 1 }).run();
    expect(trajectory!.error).toBeUndefined();
    expect(trajectory!.messages.at(-1)!.content).toBe("done");
  });
});
