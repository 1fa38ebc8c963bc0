import { describe, expect, it } from "vitest";
import { ResponseMemory } from "../model/response-memory.js";
import { RequestError } from "../request-error.js";
import { makeAnswer, testContext, weatherCall, weatherParameters } from "../testing/make-answer.js";
import { ResponsesStream, writeResponse } from "./responses.js";
import { readResponsesBody } from "./responses-request.js";

const nothing = new ResponseMemory();
const read = (body: object, memory = nothing) => readResponsesBody(body, memory);
const callItem = {
  type: "function_call",
  id: "fc_1",
  call_id: "call-1",
  name: "weather",
  arguments: '{"city":"Bern"}',
};

describe("a request", () => {
  it("is a text, or items that make messages", () => {
    expect(read({ input: "hi" }).request.messages).toEqual([{ role: "user", content: "hi" }]);
    const { request, stream } = read({
      instructions: "Be kind",
      input: [
        { role: "developer", content: "and short" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "weather?" }] },
        { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "hm" }] },
        { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "Let me see" }] },
        callItem,
        { ...callItem, call_id: "call-2" },
        { type: "function_call_output", call_id: "call-1", output: "sun" },
        { type: "function_call_output", call_id: "call-2", output: [{ type: "input_text", text: "rain" }] },
      ],
      tools: [
        { type: "function", name: "weather", parameters: weatherParameters, strict: true },
        { type: "web_search" },
        { type: "local_shell" },
      ],
      tool_choice: { type: "function", name: "weather" },
      text: { format: { type: "json_schema", name: "out", schema: { type: "object" } }, verbosity: "low" },
      max_output_tokens: 9,
      stream: true,
      reasoning: { effort: "high", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      store: false,
      parallel_tool_calls: true,
      prompt_cache_key: "k",
    });
    expect(request.messages).toEqual([
      { role: "system", content: "Be kind\n\nand short" },
      { role: "user", content: "weather?" },
      {
        role: "assistant",
        content: "Let me see",
        reasoning_content: "hm",
        tool_calls: [weatherCall, { ...weatherCall, id: "call-2" }],
      },
      { role: "tool", content: "sun", tool_call_id: "call-1", name: "weather" },
      { role: "tool", content: "rain", tool_call_id: "call-2", name: "weather" },
    ]);
    expect(request.tools).toEqual([{ type: "function", function: { name: "weather", parameters: weatherParameters } }]);
    expect(request.toolChoice).toEqual({ name: "weather" });
    expect(request.responseFormat).toEqual({ type: "json_schema", schema: { type: "object" }, name: "out" });
    expect([request.maxTokens, stream]).toEqual([9, true]);
  });

  it("continues a response that is remembered; instructions are of their own call alone", () => {
    const memory = new ResponseMemory();
    const first = read({ instructions: "Be kind", input: "hi" }, memory);
    const answer = makeAnswer({ content: "Hello" });
    const response = writeResponse(first, answer, testContext);
    memory.remember(response.id, [...first.history, answer.message], response.output);
    const second = read({ input: "again", previous_response_id: response.id }, memory);
    expect(second.request.messages).toEqual([
      { role: "user", content: "hi" },
      { role: "assistant", content: "Hello" },
      { role: "user", content: "again" },
    ]);
    const byItem = [
      { role: "user", content: "hi" },
      { type: "item_reference", id: response.output[0]!.id },
      { role: "user", content: "again" },
    ];
    expect(read({ input: byItem }, memory).request.messages).toEqual(second.request.messages);
  });

  it.each([
    [{}, "input"],
    [{ input: [] }, "input"],
    [{ input: "hi", previous_response_id: "resp_0" }, "previous_response_id"],
    [{ input: [{ type: "item_reference", id: "msg_0" }] }, "input.0.id"],
    [{ input: [{ role: "user", content: [{ type: "input_image", image_url: "x" }] }] }, "input.0.content.0"],
    [{ input: [{ type: "computer_call" }] }, "input.0.type"],
    [{ input: [{ role: "robot", content: "hi" }] }, "input.0.role"],
    [{ input: [{ type: "function_call", call_id: "a", name: "b" }] }, "input.0.arguments"],
    [{ input: [{ type: "function_call_output", output: "a" }] }, "input.0.call_id"],
    [{ input: "hi", background: true }, "background"],
    [{ input: "hi", conversation: "conv_1" }, "conversation"],
    [{ input: "hi", max_output_tokens: 0 }, "max_output_tokens"],
  ])("that is wrong is refused: %j", (body, field) => {
    expect(() => read(body)).toThrow(expect.objectContaining({ status: 400, field }));
  });
});

describe("the memory of responses", () => {
  it("forgets the oldest when there are too many, or too much text", () => {
    const said = (text: string) => [{ role: "user" as const, content: text }];
    const few = new ResponseMemory({ most: 2 });
    for (const id of ["a", "b", "c"]) few.remember(id, said(id), [{ type: "message", id: `item-${id}` }]);
    expect(["a", "b", "c"].map((id) => few.findHistory(id)?.[0]?.content)).toEqual([undefined, "b", "c"]);
    expect([few.findItem("item-a"), few.findItem("item-c")]).toEqual([undefined, { type: "message", id: "item-c" }]);
    const small = new ResponseMemory({ mostCharacters: 1000 });
    small.remember("a", said("x".repeat(600)), []);
    small.remember("b", said("x".repeat(600)), []);
    expect(small.findHistory("a")).toBeUndefined();
    expect(small.size).toBe(1);
  });
});

describe("an answer", () => {
  it("has an item each for thoughts, text and calls", () => {
    const call = read({ input: "hi", return_token_ids: true });
    const answer = makeAnswer({ content: "Let me see", reasoning_content: "hm", tool_calls: [weatherCall] });
    expect(writeResponse(call, answer, testContext)).toMatchObject({
      id: "resp_x1",
      object: "response",
      status: "completed",
      error: null,
      output: [
        { type: "reasoning", id: "rs_x1_0", content: [{ type: "reasoning_text", text: "hm" }] },
        {
          type: "message",
          id: "msg_x1_1",
          role: "assistant",
          content: [{ type: "output_text", text: "Let me see", annotations: [] }],
        },
        { type: "function_call", id: "fc_x1_2", call_id: "call-1", name: "weather", arguments: '{"city":"Bern"}' },
      ],
      usage: { input_tokens: 3, input_tokens_details: { cached_tokens: 2 }, output_tokens: 2, total_tokens: 5 },
      token_ids: [72, 256],
      cria: { node: "node-1" },
    });
  });

  it("that was cut says so", () => {
    const response = writeResponse(
      read({ input: "hi" }),
      makeAnswer({ content: "He" }, { finishReason: "length" }),
      testContext,
    );
    expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
  });
});

describe("a stream", () => {
  it("has every event of every item, numbered, and the same response at its end", () => {
    const call = read({ input: "hi", stream: true });
    const answer = makeAnswer({ content: "Let me", reasoning_content: "hm", tool_calls: [weatherCall] });
    const seen: object[] = [];
    const stream = new ResponsesStream(call, testContext, (_, response) => seen.push(response));
    const events = [
      ...stream.begin(),
      ...stream.add(0, { type: "reasoning", text: "hm" }),
      ...stream.add(0, { type: "text", text: "Let " }),
      ...stream.add(0, { type: "text", text: "me" }),
      ...stream.add(0, { type: "tool_call", index: 0, call: weatherCall }),
      ...stream.end([answer]),
    ];
    expect(events.map(({ event }) => event!.replace("response.", ""))).toEqual([
      ...["created", "in_progress"],
      ...["output_item.added", "content_part.added", "reasoning_text.delta"],
      ...["reasoning_text.done", "content_part.done", "output_item.done"],
      ...["output_item.added", "content_part.added", "output_text.delta", "output_text.delta"],
      ...["output_text.done", "content_part.done", "output_item.done"],
      ...["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
      "completed",
    ]);
    const data = events.map((each) => each.data as { type: string; sequence_number: number; output_index?: number });
    expect(data.map(({ sequence_number }) => sequence_number)).toEqual(data.map((_, i) => i));
    expect(data.map(({ output_index }) => output_index).filter((index) => index !== undefined)).toEqual([
      ...Array(6).fill(0),
      ...Array(7).fill(1),
      ...Array(4).fill(2),
    ]);
    expect(data.every(({ type }, i) => type === events[i]!.event)).toBe(true);
    expect(data[15]).toMatchObject({
      item: { type: "function_call", arguments: "", call_id: "call-1", name: "weather" },
    });
    expect(data[17]).toMatchObject({ arguments: '{"city":"Bern"}', item_id: "fc_x1_2" });
    expect(data.at(-1)).toMatchObject({ response: writeResponse(call, answer, testContext) });
    expect(seen).toEqual([(data.at(-1) as unknown as { response: object }).response]);
  });

  it("of an empty answer has a message, and a failure ends with a failed response", () => {
    const stream = new ResponsesStream(read({ input: "hi" }), testContext);
    stream.begin();
    expect(stream.end([makeAnswer()]).map(({ event }) => event)).toEqual([
      ...["response.output_item.added", "response.content_part.added", "response.output_text.done"],
      ...["response.content_part.done", "response.output_item.done", "response.completed"],
    ]);
    const failing = new ResponsesStream(read({ input: "hi" }), testContext);
    const failed = failing.fail(new RequestError(500, "failed", { code: "serve/internal", subject: "request" }));
    expect(failed).toMatchObject([
      { event: "error", data: { type: "error", code: "serve/internal", message: "request: failed" } },
      { event: "response.failed", data: { response: { status: "failed", error: { code: "server_error" } } } },
    ]);
  });
});
