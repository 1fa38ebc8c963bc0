import { describe, expect, it, vi } from "vitest";
import { EventSink, type EventSinkOptions } from "./event-sink.js";

function makeSink(options: Partial<EventSinkOptions> = {}) {
  const onCut = vi.fn();
  const sink = new EventSink({ mostBytes: 1000, stallMs: 60_000, keepAliveMs: 60_000, onCut, ...options });
  return { sink, onCut };
}

const readAll = async (sink: EventSink) => new Response(sink.body).text();

describe("EventSink", () => {
  it("writes events, with a name where they have one", async () => {
    const { sink, onCut } = makeSink();
    sink.send([{ data: { a: 1 } }, { event: "stop", data: { type: "stop" } }]);
    sink.send([{ data: "[DONE]" }]);
    sink.close();
    expect(await readAll(sink)).toBe('data: {"a":1}\n\nevent: stop\ndata: {"type":"stop"}\n\ndata: [DONE]\n\n');
    expect(onCut).not.toHaveBeenCalled();
  });

  it("sends later events to waiting readers", async () => {
    const { sink } = makeSink();
    const text = readAll(sink);
    await new Promise((resolve) => setImmediate(resolve));
    for (const word of ["one", "two"]) {
      sink.send([{ data: word }]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    sink.close();
    expect(await text).toBe("data: one\n\ndata: two\n\n");
  });

  it("cuts off a client with too much unread data", async () => {
    const { sink, onCut } = makeSink({ mostBytes: 100 });
    sink.send([{ data: "x".repeat(60) }]);
    expect(onCut).not.toHaveBeenCalled();
    sink.send([{ data: "x".repeat(60) }]);
    expect(onCut.mock.calls).toEqual([["slow"]]);
    sink.send([{ data: "more" }]);
    sink.close();
    expect(await readAll(sink)).toBe("");
    expect(onCut).toHaveBeenCalledTimes(1);
  });

  it("cuts off a client that takes nothing, also after the last event", async () => {
    for (const end of [false, true]) {
      const { promise, resolve } = withResolvers<string>();
      const { sink } = makeSink({ stallMs: 20, onCut: resolve });
      sink.send([{ data: "taken by nobody" }]);
      if (end) sink.close();
      expect(await promise).toBe("slow");
    }
  });

  it("reports a disconnected client once", async () => {
    const { sink, onCut } = makeSink();
    const reader = sink.body.getReader();
    sink.send([{ data: "one" }]);
    await reader.read();
    await reader.cancel();
    sink.send([{ data: "two" }]);
    sink.close();
    expect(onCut.mock.calls).toEqual([["gone"]]);
  });

  it("keeps an idle connection alive with comments", async () => {
    const { sink } = makeSink({ keepAliveMs: 10 });
    const reader = sink.body.getReader();
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toBe(": keep-alive\n\n");
    await reader.cancel();
  });
});

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((given) => {
    resolve = given;
  });
  return { promise, resolve };
}
