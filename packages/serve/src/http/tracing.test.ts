import { openTracer } from "@cria/rollout";
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type OpenedFake, type OpenFakeOptions, openFake, readEvents } from "../testing/open-fake.js";
import { authenticateByKey } from "./access.js";

const exporter = new InMemorySpanExporter();
const closers: (() => Promise<unknown>)[] = [];
beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
});
beforeEach(() => exporter.reset());
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});
afterAll(() => {
  trace.disable();
  propagation.disable();
  context.disable();
});

async function open(options: OpenFakeOptions = {}): Promise<OpenedFake> {
  const fake = await openFake({ tracer: await openTracer(), ...options });
  closers.push(() => fake.server.close());
  return fake;
}

/** The one span of a request; it may end a little after its response. */
async function findSpan(): Promise<ReadableSpan> {
  await expect.poll(() => exporter.getFinishedSpans().length).toBe(1);
  return exporter.getFinishedSpans()[0]!;
}

const chat = "/v1/chat/completions";
const messages = [{ role: "user", content: "hello" }];

describe("a request to the model is a span", () => {
  it.each([
    [chat, { messages }, "chat"],
    ["/v1/responses", { input: "hello" }, "chat"],
    ["/v1/messages", { messages, max_tokens: 99 }, "chat"],
    ["/v1/completions", { prompt: "hello" }, "text_completion"],
  ])("of %s", async (path, body, operation) => {
    const { post } = await open();
    const { body: answer } = await post(path, { ...body, temperature: 0.5 });
    const { usage } = answer;
    const span = await findSpan();
    expect([span.name, span.kind, span.parentSpanContext]).toEqual([`${operation} fake`, SpanKind.SERVER, undefined]);
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
    expect(span.attributes).toMatchObject({
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": "cria",
      "gen_ai.request.model": "fake",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.response.model": "fake",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": usage.prompt_tokens ?? usage.input_tokens,
      "gen_ai.usage.output_tokens": usage.completion_tokens ?? usage.output_tokens,
      "cria.reused_tokens": 0,
      "cria.prefill_seconds": 0,
      "cria.decode_seconds": 0,
      "http.request.method": "POST",
      "http.route": path,
      "http.response.status_code": 200,
    });
    expect(span.attributes["cria.queue_seconds"]).toBeGreaterThanOrEqual(0);
    expect(span.attributes).not.toHaveProperty("error.type");
  });

  it("with all of its answers, and its session", async () => {
    const { post } = await open();
    await post(`/sessions/s1${chat}`, { messages, n: 2 });
    const { attributes } = await findSpan();
    expect(attributes).toMatchObject({
      "gen_ai.conversation.id": "s1",
      "gen_ai.request.choice.count": 2,
      "gen_ai.response.finish_reasons": ["stop", "stop"],
      "http.route": "/sessions/:session/v1/chat/completions",
    });
  });

  it("that lasts as long as its stream", async () => {
    const { url } = await open({ engine: { latencyMs: 30 }, limits: { beginMs: 1 } });
    const response = await fetch(url + chat, { method: "POST", body: JSON.stringify({ messages, stream: true }) });
    expect(exporter.getFinishedSpans()).toEqual([]);
    const events = readEvents(await response.text());
    expect(events.at(-1)).toBe("[DONE]");
    const { attributes } = await findSpan();
    expect(attributes).toMatchObject({
      "http.response.status_code": 200,
      "gen_ai.response.finish_reasons": ["stop"],
    });
    expect(attributes["gen_ai.usage.output_tokens"]).toBeGreaterThan(0);
  });

  it("that counts the time for which it waited for its turn", async () => {
    const { post } = await open({ engine: { latencyMs: 40 }, limits: { running: 1 } });
    await Promise.all([post(chat, { messages }), post(chat, { messages })]);
    await expect.poll(() => exporter.getFinishedSpans().length).toBe(2);
    const waited = exporter.getFinishedSpans().map(({ attributes }) => Number(attributes["cria.queue_seconds"]));
    expect(Math.max(...waited)).toBeGreaterThan(0.02);
  });

  it("below the client's span, in its trace", async () => {
    const { post } = await open();
    const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
    await post(chat, { messages }, { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "vendor=1" });
    const span = await findSpan();
    expect(span.spanContext().traceId).toBe(traceId);
    expect(span.parentSpanContext).toMatchObject({ spanId, isRemote: true });
  });

  it("and no other request is, nor any without a tracer", async () => {
    const { post, url } = await open();
    await fetch(`${url}/v1/models`);
    await fetch(`${url}/metrics`);
    await post("/v1/messages/count_tokens", { messages, max_tokens: 9 });
    await post("/sessions", {});
    const plain = await open({ tracer: undefined });
    await plain.post(chat, { messages });
    expect(exporter.getFinishedSpans()).toEqual([]);
  });
});

describe("the span of a request that fails", () => {
  const refusals: [what: string, options: OpenFakeOptions, body: unknown, status: number, code: string][] = [
    ["by a wrong field", {}, { messages, n: 0 }, 400, "serve/bad-field"],
    ["by a body that is no JSON", {}, "{", 400, "serve/bad-body"],
    ["without the key", { authenticate: authenticateByKey("secret") }, { messages }, 401, "serve/bad-key"],
    ["by a full server", { limits: { running: 1, waiting: 1 } }, { messages, n: 3 }, 429, "serve/busy"],
  ];
  it.each(refusals)(
    "%s has its code and status, and is no failure of the server",
    async (_what, options, body, status, code) => {
      const { post } = await open(options);
      expect((await post(chat, body)).status).toBe(status);
      const span = await findSpan();
      expect(span.attributes).toMatchObject({ "error.type": code, "http.response.status_code": status });
      expect(span.status.code).toBe(SpanStatusCode.UNSET);
    },
  );

  it.each([false, true])("in the model is marked as failed (stream: %s)", async (stream) => {
    const { post, engine } = await open();
    const create = engine.createSequence.bind(engine);
    engine.createSequence = () => {
      const sequence = create();
      sequence.generate = () => Promise.reject(new RangeError("broken"));
      return sequence;
    };
    expect((await post(chat, { messages, stream })).status).toBe(500);
    const span = await findSpan();
    expect(span.attributes).toMatchObject({ "error.type": "RangeError", "http.response.status_code": 500 });
    expect(span.status).toMatchObject({ code: SpanStatusCode.ERROR, message: "broken" });
  });

  it.each([false, true])("since its client hangs up says so (stream: %s)", async (stream) => {
    const { url, engine } = await open({ engine: { latencyMs: 60_000 }, limits: { beginMs: 1 } });
    const controller = new AbortController();
    const body = JSON.stringify({ messages, stream });
    const asked = fetch(url + chat, { method: "POST", body, signal: controller.signal }).then((response) =>
      response.text(),
    );
    const refused = expect(asked).rejects.toThrow();
    await expect.poll(() => engine.counts.inFlight).toBe(1);
    controller.abort();
    await refused;
    const span = await findSpan();
    expect(span.attributes["error.type"]).toBe("serve/client-gone");
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
  });

  it("since the server ends says so", async () => {
    const { url, engine, server } = await open({ engine: { latencyMs: 60_000 }, limits: { beginMs: 1 } });
    const asked = fetch(url + chat, { method: "POST", body: JSON.stringify({ messages, stream: true }) });
    const read = asked.then((response) => response.text());
    await expect.poll(() => engine.counts.inFlight).toBe(1);
    await server.close();
    await read;
    const span = await findSpan();
    expect(span.attributes["error.type"]).toBe("serve/ending");
    expect(span.status.code).toBe(SpanStatusCode.ERROR);
  });
});
