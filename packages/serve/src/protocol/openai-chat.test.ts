import { describe, expect, it } from "vitest";
import { makeAnswer, testContext, weatherCall, weatherParameters } from "../testing/make-answer.js";
import { openAiChat } from "./openai-chat.js";

const hello = [{ role: "user", content: "hi" }];
const weather = { type: "function", function: { name: "weather", parameters: weatherParameters } };
const read = (more: object = {}) => openAiChat.read({ messages: hello, ...more });
const refusalOf = (body: unknown) => {
  try {
    openAiChat.read(body);
  } catch (error) {
    return openAiChat.error(error as never) as { error: { message: string; param: string; type: string } };
  }
  throw new Error("was not refused");
};

describe("a request", () => {
  it("is a conversation with tools, sampling and limits", () => {
    const { request, n, stream, wishes } = read({
      messages: [
        { role: "system", content: "Be" },
        { role: "developer", content: [{ type: "text", text: "kind" }] },
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" },
          ],
        },
        { role: "assistant", content: null, tool_calls: [weatherCall], reasoning_content: "hm" },
        { role: "tool", tool_call_id: "call-1", content: "sun" },
      ],
      tools: [{ type: "web_search" }, weather, { type: "custom", custom: { name: "x" } }],
      tool_choice: { type: "function", function: { name: "weather" } },
      response_format: { type: "json_schema", json_schema: { name: "out", schema: { type: "object" }, strict: true } },
      max_completion_tokens: 9,
      max_tokens: 5,
      stop: "END",
      temperature: 0.5,
      top_p: 0.9,
      top_k: -1,
      min_p: null,
      seed: -1,
      n: 2,
      stream: true,
      return_token_ids: true,
      logprobs: true,
    });
    expect(request.messages).toEqual([
      { role: "system", content: "Be\n\nkind" },
      { role: "user", content: "a\nb" },
      { role: "assistant", content: "", tool_calls: [weatherCall], reasoning_content: "hm" },
      { role: "tool", content: "sun", tool_call_id: "call-1", name: "weather" },
    ]);
    expect(request.tools).toEqual([{ type: "function", function: { name: "weather", parameters: weatherParameters } }]);
    expect(request.toolChoice).toEqual({ name: "weather" });
    expect(request.responseFormat).toEqual({ type: "json_schema", schema: { type: "object" }, name: "out" });
    expect([request.maxTokens, request.stop]).toEqual([9, ["END"]]);
    expect(request.sampling).toEqual({ temperature: 0.5, topP: 0.9, topK: 0, seed: 0xffff_ffff });
    expect([n, stream, wishes]).toEqual([2, true, { ids: true, logprobs: true }]);
  });

  it("may have fields that mean nothing here, and nulls", () => {
    const ignored = {
      store: true,
      parallel_tool_calls: false,
      prompt_cache_key: "k",
      prompt_cache_retention: "24h",
      verbosity: "low",
      reasoning_effort: "high",
      user: "u",
      metadata: { a: "b" },
      service_tier: "auto",
      modalities: ["text"],
      frequency_penalty: 0,
      logit_bias: null,
      tools: null,
      tool_choice: null,
      stop: null,
      temperature: null,
      max_tokens: null,
      stream_options: null,
      response_format: { type: "text" },
      some_new_field: { deep: [1] },
    };
    expect(read(ignored)).toEqual(read());
    expect(read().request).toEqual({ messages: hello, tools: [] });
  });

  it.each([
    [{}, "messages", "nothing"],
    [{ messages: [] }, "messages", "a list of 0"],
    [{ messages: "hi" }, "messages", '"hi"'],
    [{ messages: [{ role: "robot", content: "hi" }] }, "messages.0.role", '"robot"'],
    [{ messages: [{ role: "user" }] }, "messages.0.content", "nothing"],
    [{ messages: [{ role: "user", content: 5 }] }, "messages.0.content", "5"],
    [
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] },
      "messages.0.content.0",
      "image_url",
    ],
    [{ messages: [{ role: "user", content: [{ type: "text", text: 1 }] }] }, "messages.0.content.0.text", "1"],
    [{ messages: [...hello, { role: "assistant", content: "a" }] }, "messages", "assistant"],
    [
      { messages: [{ role: "assistant", tool_calls: [{ id: "1", function: {} }] }, ...hello] },
      "messages.0.tool_calls.0.function.name",
      "nothing",
    ],
    [{ messages: hello, temperature: "warm" }, "temperature", '"warm"'],
    [{ messages: hello, n: 0 }, "n", "0"],
    [{ messages: hello, n: 1000 }, "n", "1000"],
    [{ messages: hello, max_tokens: 0 }, "max_tokens", "0"],
    [{ messages: hello, tools: [{ type: "function", function: {} }] }, "tools.0.function.name", "nothing"],
    [
      { messages: hello, tools: [{ type: "function", function: { name: "f", parameters: [] } }] },
      "tools.0.function.parameters",
      "a list of 0",
    ],
    [{ messages: hello, tool_choice: "required" }, "tool_choice", "required"],
    [
      { messages: hello, tools: [weather], tool_choice: { type: "function", function: { name: "x" } } },
      "tool_choice.name",
      '"x"',
    ],
    [{ messages: hello, tool_choice: 7 }, "tool_choice", "7"],
    [{ messages: hello, response_format: { type: "xml" } }, "response_format.type", '"xml"'],
    [
      { messages: hello, response_format: { type: "json_schema", json_schema: {} } },
      "response_format.json_schema.schema",
      "nothing",
    ],
    [{ messages: hello, stop: [1] }, "stop", "a list of 1"],
    [[], "body", "a list of 0"],
    [null, "body", "null"],
  ])("that is wrong is refused: %j", (body, param, received) => {
    const { error } = refusalOf(body);
    expect(error).toMatchObject({ param, type: "invalid_request_error", code: "serve/bad-field" });
    expect(error.message).toMatch(/expected: \S/);
    expect(error.message.split("received: ")[1]).toContain(received);
  });

  it("with prototypes for keys is as one without", () => {
    const body = JSON.parse(
      '{"messages": [{"role": "user", "content": "hi", "__proto__": {"role": "system"}}], "__proto__": {"n": 3}}',
    );
    expect(openAiChat.read(body)).toEqual(read());
  });
});

describe("an answer", () => {
  it("has the text, why it ended, and the usage", () => {
    expect(openAiChat.answer(read(), [makeAnswer({ content: "Hello", reasoning_content: "hm" })], testContext)).toEqual(
      {
        id: "chatcmpl-x1",
        object: "chat.completion",
        created: 1_700_000_000,
        model: "tiny",
        system_fingerprint: "fp-test",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "Hello", refusal: null, reasoning_content: "hm" },
            logprobs: null,
            finish_reason: "stop",
          },
        ],
        usage: {
          prompt_tokens: 3,
          completion_tokens: 2,
          total_tokens: 5,
          prompt_tokens_details: { cached_tokens: 2 },
          completion_tokens_details: { reasoning_tokens: 0 },
        },
        cria: { session: "session-1", node: "node-1", policy_version: 7, reused_tokens: 2 },
      },
    );
  });

  it("has calls in a field of their own, and then no content", () => {
    const answer = openAiChat.answer(read(), [makeAnswer({ tool_calls: [weatherCall] })], testContext);
    expect(answer).toMatchObject({
      choices: [{ message: { content: null, tool_calls: [weatherCall] }, finish_reason: "tool_calls" }],
    });
  });

  it("has ids, logprobs and bytes of every sampled token if asked", () => {
    const call = read({ return_token_ids: true, logprobs: true, n: 2 });
    const answer = openAiChat.answer(call, [makeAnswer(), makeAnswer({}, { node: "node-2" })], testContext);
    expect(answer).toMatchObject({
      prompt_token_ids: [1, 2, 3],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
      choices: [
        {
          token_ids: [72, 256],
          logprobs: {
            content: [
              { token: "H", logprob: -0.5, bytes: [72], top_logprobs: [] },
              { token: "<|im_end|>", logprob: -0.25, top_logprobs: [] },
            ],
          },
          cria: { node: "node-1" },
        },
        { index: 1, cria: { node: "node-2" } },
      ],
    });
  });
});

it("takes candidates with logprobs alone, at most 20", () => {
  expect(read({ logprobs: true, top_logprobs: 20 }).request.topLogprobs).toBe(20);
  expect(read({ logprobs: true, top_logprobs: 0 }).request.topLogprobs).toBeUndefined();
  expect(() => read({ top_logprobs: 2 })).toThrow(
    expect.objectContaining({ code: "serve/bad-field", subject: "top_logprobs" }),
  );
  expect(() => read({ logprobs: true, top_logprobs: 21 })).toThrow(
    expect.objectContaining({ code: "serve/bad-field", subject: "top_logprobs" }),
  );
});

describe("a stream", () => {
  it("has the role first, then pieces, then why it ended, the usage, and [DONE]", () => {
    const call = read({
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
      logprobs: true,
    });
    const stream = openAiChat.stream(call, testContext);
    const answer = makeAnswer({ content: "Hello", tool_calls: [weatherCall] });
    const events = [
      ...stream.begin(),
      ...stream.add(0, { type: "reasoning", text: "hm" }),
      ...stream.add(0, { type: "text", text: "Hel" }),
      ...stream.add(0, { type: "text", text: "lo" }),
      ...stream.add(0, { type: "tool_call", index: 0, call: weatherCall }),
      ...stream.end([answer]),
    ];
    expect(events.at(-1)!.data).toBe("[DONE]");
    type Chunk = { object: string; usage: object | null; choices: { delta: object; finish_reason: string | null }[] };
    const chunks = events.slice(0, -1).map(({ data }) => data as Chunk);
    expect(chunks.every(({ object }) => object === "chat.completion.chunk")).toBe(true);
    expect(chunks.slice(0, 5).map(({ choices }) => choices[0]!.delta)).toEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "hm" },
      { content: "Hel" },
      { content: "lo" },
      { tool_calls: [{ index: 0, ...weatherCall }] },
    ]);
    expect(chunks.slice(0, 6).map(({ choices }) => choices[0]!.finish_reason)).toEqual([
      ...Array(5).fill(null),
      "tool_calls",
    ]);
    expect(chunks[5]).toMatchObject({
      prompt_token_ids: [1, 2, 3],
      choices: [{ delta: {}, token_ids: [72, 256], logprobs: { content: [{ token: "H" }, {}] } }],
      cria: { node: "node-1" },
    });
    expect(chunks.map(({ usage }) => usage?.constructor === Object)).toEqual([...Array(6).fill(false), true]);
    expect(chunks[6]).toMatchObject({ choices: [], usage: { total_tokens: 5 } });
    expect(JSON.stringify(events).match(/"token_ids"/g)).toHaveLength(1);
  });

  it("of several choices says whose each piece is", () => {
    const stream = openAiChat.stream(read({ n: 2 }), testContext);
    const begun = stream.begin().map(({ data }) => (data as { choices: { index: number }[] }).choices[0]!.index);
    expect(begun).toEqual([0, 1]);
    expect(stream.add(1, { type: "text", text: "x" })).toMatchObject([{ data: { choices: [{ index: 1 }] } }]);
    expect(stream.end([makeAnswer(), makeAnswer()])).toHaveLength(3);
  });
});
