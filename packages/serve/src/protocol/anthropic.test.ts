import { describe, expect, it } from "vitest";
import { RequestError } from "../request-error.js";
import { makeAnswer, testContext, weatherCall, weatherParameters } from "../testing/make-answer.js";
import { anthropicMessages } from "./anthropic.js";

const hello = [{ role: "user", content: "hi" }];
const read = (more: object = {}) => anthropicMessages.read({ model: "m", max_tokens: 100, messages: hello, ...more });

describe("a request", () => {
  it("is a conversation with tools, sampling and limits", () => {
    const { request, stream, thinking } = read({
      system: [
        { type: "text", text: "Be", cache_control: { type: "ephemeral" } },
        { type: "text", text: "kind" },
      ],
      messages: [
        { role: "user", content: [{ type: "text", text: "weather?" }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "s" },
            { type: "redacted_thinking", data: "x" },
            { type: "text", text: "Let me see" },
            { type: "tool_use", id: "call-1", name: "weather", input: { city: "Bern" } },
            { type: "tool_use", id: "call-2", name: "weather", input: { _raw: "{oops" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call-1", content: [{ type: "text", text: "sun" }] },
            { type: "tool_result", tool_use_id: "call-2", content: "no such city", is_error: true },
            { type: "text", text: "and" },
            { type: "text", text: "now?" },
          ],
        },
      ],
      tools: [
        { name: "weather", description: "of a city", input_schema: weatherParameters },
        { type: "bash_20250124", name: "bash" },
      ],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
      stop_sequences: ["END"],
      temperature: 0,
      top_k: 5,
      stream: true,
      thinking: { type: "enabled", budget_tokens: 1024 },
      metadata: { user_id: "u" },
    });
    expect(request.messages).toEqual([
      { role: "system", content: "Be\n\nkind" },
      { role: "user", content: "weather?" },
      {
        role: "assistant",
        content: "Let me see",
        reasoning_content: "hm",
        tool_calls: [
          weatherCall,
          { id: "call-2", type: "function", function: { name: "weather", arguments: "{oops" } },
        ],
      },
      { role: "tool", content: "sun", tool_call_id: "call-1", name: "weather" },
      { role: "tool", content: "no such city", tool_call_id: "call-2", name: "weather" },
      { role: "user", content: "and\nnow?" },
    ]);
    expect(request.tools).toEqual([
      { type: "function", function: { name: "weather", description: "of a city", parameters: weatherParameters } },
    ]);
    expect([request.toolChoice, request.maxTokens, request.stop]).toEqual(["required", 100, ["END"]]);
    expect(request.sampling).toEqual({ temperature: 0, topK: 5 });
    expect([stream, thinking]).toEqual([true, true]);
  });

  it.each([
    [{ messages: [{ role: "user", content: [{ type: "image", source: {} }] }] }, "messages.0.content.0"],
    [{ messages: [{ role: "user", content: null }] }, "messages.0.content"],
    [{ messages: [...hello, { role: "assistant", content: "prefilled" }] }, "messages"],
    [
      { messages: [{ role: "assistant", content: [{ type: "tool_use", id: "a", name: "b", input: "c" }] }, ...hello] },
      "messages.0.content.0.input",
    ],
    [{ messages: [{ role: "user", content: [{ type: "tool_result" }] }] }, "messages.0.content.0.tool_use_id"],
    [{ tools: [{ name: 1 }] }, "tools.0.name"],
    [{ tool_choice: { type: "tool", name: "nope" } }, "tool_choice.name"],
    [{ max_tokens: -1 }, "max_tokens"],
    [{ system: 4 }, "system"],
  ])("that is wrong is refused: %j", (more, field) => {
    expect(() => read(more)).toThrow(RequestError);
    try {
      read(more);
    } catch (error) {
      const { error: details } = anthropicMessages.error(error as RequestError) as { error: { message: string } };
      expect(error).toMatchObject({ status: 400, field });
      expect(details).toEqual({ type: "invalid_request_error", message: expect.stringContaining(field) });
      expect(details.message).toMatch(/expected:[\s\S]*received:/);
    }
  });
});

describe("an answer", () => {
  const answer = makeAnswer({ content: "Let me see", reasoning_content: "hm", tool_calls: [weatherCall] });

  it("has blocks, and counts cached tokens apart", () => {
    expect(anthropicMessages.answer(read({ thinking: { type: "enabled" } }), [answer], testContext)).toMatchObject({
      id: "msg_x1",
      type: "message",
      role: "assistant",
      model: "tiny",
      content: [
        { type: "thinking", thinking: "hm" },
        { type: "text", text: "Let me see" },
        { type: "tool_use", id: "call-1", name: "weather", input: { city: "Bern" } },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 1, cache_read_input_tokens: 2, output_tokens: 2 },
      cria: { node: "node-1" },
    });
  });

  it("shows thoughts only if asked, and has at least one block", () => {
    const { content } = anthropicMessages.answer(read(), [answer], testContext) as { content: { type: string }[] };
    expect(content.map(({ type }) => type)).toEqual(["text", "tool_use"]);
    expect(anthropicMessages.answer(read(), [makeAnswer()], testContext)).toMatchObject({
      content: [{ type: "text", text: "" }],
      stop_reason: "end_turn",
    });
  });

  it("names the client's own text that ended it, streamed or not", () => {
    const call = read({ stop_sequences: ["END"] });
    const ended = makeAnswer({ content: "so" }, { stopString: "END" });
    const told = { stop_reason: "stop_sequence", stop_sequence: "END" };
    expect(anthropicMessages.answer(call, [ended], testContext)).toMatchObject(told);
    expect(anthropicMessages.stream(call, testContext).end([ended]).at(-2)!.data).toMatchObject({ delta: told });
    const byServer = makeAnswer({ content: "so" }, { stopString: "###" });
    expect(anthropicMessages.answer(call, [byServer], testContext)).toMatchObject({
      stop_reason: "end_turn",
      stop_sequence: null,
    });
  });

  it("has arguments that are not a mapping as text, which comes back as it was", () => {
    const broken = { ...weatherCall, function: { name: "weather", arguments: "{oops" } };
    const { content } = anthropicMessages.answer(read(), [makeAnswer({ tool_calls: [broken] })], testContext) as {
      content: object[];
    };
    expect(content).toMatchObject([{ input: { _raw: "{oops" } }]);
    expect(read({ messages: [{ role: "assistant", content }, ...hello] }).request.messages[0]!.tool_calls).toEqual([
      broken,
    ]);
  });
});

describe("a stream", () => {
  const collect = (thinking: boolean) => {
    const call = read({ stream: true, return_token_ids: true, ...(thinking ? { thinking: { type: "enabled" } } : {}) });
    const stream = anthropicMessages.stream(call, testContext);
    return [
      ...stream.begin(),
      ...stream.add(0, { type: "reasoning", text: "hm" }),
      ...stream.add(0, { type: "text", text: "Let " }),
      ...stream.add(0, { type: "text", text: "me" }),
      ...stream.add(0, { type: "tool_call", index: 0, call: weatherCall }),
      ...stream.add(0, { type: "tool_call", index: 1, call: { ...weatherCall, id: "call-2" } }),
      ...stream.end([makeAnswer({ content: "Let me", tool_calls: [weatherCall] })]),
    ].map(({ event, data }) => {
      expect((data as { type: string }).type).toBe(event);
      return data as { type: string; index?: number; delta?: object; usage?: object; content_block?: object };
    });
  };

  it("opens and closes each block, one at a time", () => {
    const events = collect(true);
    const short = events.map(({ type, index }) =>
      index === undefined ? type : `${type.replace("content_block_", "")} ${index}`,
    );
    expect(short).toEqual([
      ...["message_start", "ping"],
      ...["start 0", "delta 0", "delta 0", "stop 0"],
      ...["start 1", "delta 1", "delta 1", "stop 1"],
      ...["start 2", "delta 2", "stop 2"],
      ...["start 3", "delta 3", "stop 3"],
      ...["message_delta", "message_stop"],
    ]);
    expect(events[3]!.delta).toEqual({ type: "thinking_delta", thinking: "hm" });
    expect(events[4]!.delta).toMatchObject({ type: "signature_delta" });
    expect(events[7]!.delta).toEqual({ type: "text_delta", text: "Let " });
    expect(events[10]!.content_block).toEqual({
      type: "tool_use",
      id: "call-1",
      name: "weather",
      input: {},
      caller: { type: "direct" },
    });
    expect(events[11]!.delta).toEqual({ type: "input_json_delta", partial_json: '{"city":"Bern"}' });
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { input_tokens: 1, cache_read_input_tokens: 2, output_tokens: 2 },
      token_ids: [72, 256],
    });
  });

  it("without thoughts begins with the text", () => {
    expect(collect(false)[2]).toMatchObject({ type: "content_block_start", index: 0, content_block: { type: "text" } });
  });

  it("of an empty answer has a block all the same, and a failure ends it", () => {
    const stream = anthropicMessages.stream(read(), testContext);
    const types = [...stream.begin(), ...stream.end([makeAnswer()])].map(({ event }) => event);
    expect(types).toEqual([
      "message_start",
      "ping",
      "content_block_start",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    const failed = stream.fail(new RequestError(503, "is ending", { code: "serve/ending", subject: "server" }));
    expect(failed).toEqual([
      {
        event: "error",
        data: { type: "error", error: { type: "overloaded_error", message: expect.stringMatching(/^server: /) } },
      },
    ]);
  });
});
