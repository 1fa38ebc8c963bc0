import { afterEach, describe, expect, it } from "vitest";
import { type OpenedFake, type OpenFakeOptions, openFake, readEvents } from "../testing/open-fake.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function open(options: OpenFakeOptions = {}) {
  const fake = await openFake(options);
  closers.push(async () => {
    await fake.server.close();
    // No test may leave a sequence in the engine.
    expect(fake.engine.counts.disposed).toBe(fake.engine.counts.created);
    expect(fake.engine.counts.inFlight).toBe(0);
  });
  return fake;
}

const user = (content: string) => ({ role: "user", content });
const lookUp = { name: "look_up", description: "a word", parameters: { type: "object", properties: {} } };

describe("chat completions", () => {
  it("continue a conversation's tokens over turns with tools, streamed or not, to the same nodes", async () => {
    const tools = [{ type: "function", function: lookUp }, { type: "web_search" }];
    const talks = [];
    for (const stream of [false, true]) {
      const { url, post } = await open();
      const ask = async (messages: object[]) => {
        const body = { messages, tools, stream, return_token_ids: true };
        if (!stream) {
          const answer = (await post("/v1/chat/completions", body)).body;
          return { ...answer.choices[0], prompt: answer.prompt_token_ids, cria: answer.cria };
        }
        const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body) });
        expect(response.headers.get("content-type")).toContain("text/event-stream");
        const events = readEvents(await response.text());
        expect(events.at(-1)).toBe("[DONE]");
        const pieces = events.slice(0, -1);
        const deltas = pieces.map(({ choices }) => choices[0].delta);
        const calls = deltas.flatMap(({ tool_calls = [] }) =>
          tool_calls.map(({ index: _, ...call }: { index: number }) => call),
        );
        const content = deltas.map((delta) => delta.content ?? "").join("");
        const last = pieces.at(-1);
        return {
          ...last.choices[0],
          message: { content: content === "" ? null : content, ...(calls.length > 0 ? { tool_calls: calls } : {}) },
          prompt: last.prompt_token_ids,
          cria: last.cria,
        };
      };
      const question = [user("look up llama")];
      const first = await ask(question);
      expect(first.finish_reason).toBe("tool_calls");
      expect(first.message.content).toBe("Wait");
      expect(first.message.tool_calls).toMatchObject([
        { type: "function", function: { name: "look_up", arguments: '{"word":"llama"}' } },
      ]);
      const [call] = first.message.tool_calls;
      const answered = [
        ...question,
        { role: "assistant", content: first.message.content, tool_calls: [call] },
        { role: "tool", tool_call_id: call.id, content: "an animal" },
      ];
      const second = await ask(answered);
      expect(second.finish_reason).toBe("stop");
      expect(second.message.content).toMatch(/an animal.* #\d+/);
      const whole = [...first.prompt, ...first.token_ids];
      expect(second.prompt.slice(0, whole.length)).toEqual(whole);
      expect(second.cria.reused_tokens).toBeGreaterThanOrEqual(whole.length - 1);
      talks.push(
        [first, second].map(({ token_ids, prompt, cria, message }) => ({
          token_ids,
          prompt,
          node: cria.node,
          text: message.content,
        })),
      );
    }
    expect(talks[1]).toEqual(talks[0]);
  });

  it("make n answers, each with draws and a node of its own, streamed too", async () => {
    const { url, post } = await open({ limits: { running: 2 } });
    const body = { messages: [user("hi")], n: 3 };
    const { body: answer } = await post("/v1/chat/completions", body);
    const texts = answer.choices.map(({ message }: { message: { content: string } }) => message.content);
    expect(new Set(texts).size).toBe(3);
    expect(new Set(answer.choices.map(({ cria }: { cria: { node: string } }) => cria.node)).size).toBe(3);
    const other = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ ...body, stream: true, messages: [user("hello")] }),
    });
    const events = readEvents(await other.text()).slice(0, -1);
    const ends = events.flatMap(({ choices }) =>
      choices.filter((choice: { finish_reason: string }) => choice.finish_reason),
    );
    expect(ends.map(({ index }) => index)).toEqual([0, 1, 2]);
  });

  it("the first of n answers equals the answer to a request for one", async () => {
    const say = async (n: number, path: string) => {
      const { post } = await open();
      const { body } = await post(path, { messages: [user("hi")], n });
      return body.choices[0].message.content;
    };
    for (const path of ["/v1/chat/completions", "/sessions/s/v1/chat/completions"])
      expect(await say(3, path)).toBe(await say(1, path));
  });

  it("draw by the server's seed and the session's name", async () => {
    const say = async (seed: number, session: string) => {
      const { post } = await open({ seed });
      const { body } = await post(`/sessions/${session}/v1/chat/completions`, { messages: [user("hi")] });
      return body.choices[0].message.content;
    };
    expect(await say(1, "a")).toBe(await say(1, "a"));
    expect(new Set([await say(1, "a"), await say(1, "b"), await say(2, "a")]).size).toBe(3);
  });

  it("are the same for the same seed, in any session", async () => {
    const { post } = await open();
    const ask = async (seed: number, session: string) => {
      const { body } = await post(`/sessions/${session}/v1/chat/completions`, { messages: [user("hi")], seed });
      return body.choices[0].message.content;
    };
    expect(await ask(5, "a")).toBe(await ask(5, "b"));
    expect(await ask(5, "a")).toBe(await ask(5, "b"));
    const { body } = await post("/v1/chat/completions", { messages: [user("hi")], seed: 5, n: 2 });
    expect(body.choices[0].message.content).not.toBe(body.choices[1].message.content);
    expect(await ask(6, "c")).not.toBe(await ask(5, "d"));
  });

  it("end at the limit of tokens, the request's or the server's", async () => {
    const { post } = await open({ limits: { answerTokens: 5 } });
    const ask = async (max_tokens?: number) => {
      const { body } = await post("/v1/chat/completions", { messages: [user(`${max_tokens}`)], max_tokens });
      return [body.usage.completion_tokens, body.choices[0].finish_reason];
    };
    expect([await ask(), await ask(3), await ask(100)]).toEqual([
      [5, "length"],
      [3, "length"],
      [5, "length"],
    ]);
  });

  it("that the model fails at are errors: before the first piece by status, later in the stream", async () => {
    let failures = 0;
    const { url, post, server } = await open({
      engine: {
        reply: () => {
          failures++;
          throw new Error("a secret of the machine");
        },
      },
      limits: { beginMs: 1, keepAliveMs: 5 },
    });
    const { status, body } = await post("/v1/chat/completions", { messages: [user("hi")] });
    expect(status).toBe(500);
    expect(body.error).toMatchObject({ type: "server_error", code: "serve/internal" });
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(failures).toBe(1);
    expect(server.endpoint.gate.running).toBe(0);
    const late = await open({
      engine: { reply: () => Promise.reject(new Error("late")), latencyMs: 50 },
      limits: { beginMs: 1 },
    });
    const response = await fetch(`${late.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: [user("hi")], stream: true }),
    });
    expect(response.status).toBe(200);
    const events = readEvents(await response.text());
    expect(events.at(-2)).toMatchObject({ error: { type: "server_error", message: "request: failed" } });
    const messages = await fetch(`${late.url}/v1/messages`, {
      method: "POST",
      body: JSON.stringify({ messages: [user("hi")], stream: true }),
    });
    expect(readEvents(await messages.text()).at(-1)).toEqual({
      type: "error",
      error: { type: "api_error", message: "request: failed" },
    });
    expect(url).not.toBe(late.url);
  });
});

describe("messages", () => {
  it("answer with tools, in blocks", async () => {
    const { post } = await open();
    const tools = [{ name: "look_up", input_schema: lookUp.parameters }];
    const question = [user("look up llama")];
    const first = (await post("/v1/messages", { messages: question, max_tokens: 500, tools })).body;
    expect(first).toMatchObject({
      type: "message",
      stop_reason: "tool_use",
      content: [
        { type: "text", text: "Wait" },
        { type: "tool_use", name: "look_up", input: { word: "llama" } },
      ],
    });
    const result = [{ type: "tool_result", tool_use_id: first.content[1].id, content: "an animal" }];
    const messages = [...question, { role: "assistant", content: first.content }, { role: "user", content: result }];
    const second = (await post("/v1/messages", { messages, max_tokens: 500, tools })).body;
    expect(second.stop_reason).toBe("end_turn");
    expect(second.usage.cache_read_input_tokens).toBeGreaterThan(0);
    expect(second.cria.session).toBe(first.cria.session);
  });

  it("count the tokens that a prompt has", async () => {
    const { post } = await open();
    const body = { messages: [user("hi")], system: "Be kind" };
    const { body: counted } = await post("/v1/messages/count_tokens", body);
    const { body: answer } = await post("/v1/messages", { ...body, max_tokens: 5 });
    expect(counted).toEqual({ input_tokens: answer.usage.input_tokens + answer.usage.cache_read_input_tokens });
  });
});

describe("responses", () => {
  it("continue by id, within their session, from the tokens that were sampled", async () => {
    const { post } = await open();
    for (const base of ["", "/sessions/s1"]) {
      const tools = [{ type: "function", ...lookUp }];
      const first = (await post(`${base}/v1/responses`, { input: "look up llama", tools })).body;
      expect(first).toMatchObject({
        object: "response",
        status: "completed",
        output: [{ type: "message" }, { type: "function_call", name: "look_up", arguments: '{"word":"llama"}' }],
      });
      const second = (
        await post(`${base}/v1/responses`, {
          previous_response_id: first.id,
          input: [{ type: "function_call_output", call_id: first.output[1].call_id, output: "an animal" }],
          tools,
        })
      ).body;
      expect(second.output[0].content[0].text).toMatch(/an animal/);
      expect(second.previous_response_id).toBe(first.id);
      expect(second.cria.reused_tokens).toBeGreaterThan(first.usage.input_tokens);
      expect(second.cria.session).toBe(first.cria.session);
    }
    const elsewhere = (await post("/sessions/s1/v1/responses", { input: "hi" })).body;
    const { status, body } = await post("/v1/responses", { previous_response_id: elsewhere.id, input: "again" });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ param: "previous_response_id", type: "invalid_request_error" });
  });

  it("stream events of which the last has the whole, which is remembered", async () => {
    const { url, post } = await open();
    const response = await fetch(`${url}/v1/responses`, {
      method: "POST",
      body: JSON.stringify({ input: "hi", stream: true }),
    });
    const text = await response.text();
    const events = readEvents(text);
    expect(events.map(({ type }) => type)).toEqual(text.match(/(?<=^event: ).+$/gm));
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, i) => i));
    const { response: last } = events.at(-1);
    expect(last.output[0].content[0].text).toMatch(/^hi #\d+$/);
    const { status } = await post("/v1/responses", { previous_response_id: last.id, input: "again" });
    expect(status).toBe(200);
  });
});

describe("top_logprobs", () => {
  type Entry = { token: string; logprob: number; top_logprobs: { token: string; logprob: number; bytes: number[] }[] };
  const check = (entries: Entry[], engine: OpenedFake["engine"]) => {
    expect(entries.length).toBeGreaterThan(2);
    for (const { top_logprobs } of entries) {
      expect(top_logprobs).toHaveLength(3);
      expect(top_logprobs.map(({ logprob }) => logprob)).toEqual(
        top_logprobs.map(({ logprob }) => logprob).sort((a, b) => b - a),
      );
    }
    // The engine's words for the second token, given the tokens before it.
    const [first] = entries;
    const [before] = engine.tokenize(first!.token);
    const expected = engine.listLikeliest([before!], 3).map(({ id, logprob }) => [engine.detokenize([id]), logprob]);
    expect(entries[1]!.top_logprobs.map(({ token, logprob }) => [token, logprob])).toEqual(expected);
  };
  const messages = [{ role: "user", content: "hi" }];

  it("are given by each endpoint, streamed or not", async () => {
    const { engine, post, url } = await open();
    const wanted = { logprobs: true, top_logprobs: 3 };
    const chat = await post("/v1/chat/completions", { messages, ...wanted });
    check(chat.body.choices[0].logprobs.content, engine);
    const response = await post("/v1/responses", {
      input: "hi",
      top_logprobs: 3,
      include: ["message.output_text.logprobs"],
    });
    check(response.body.output[0].content[0].logprobs, engine);
    const message = await post("/v1/messages", { max_tokens: 50, messages, ...wanted });
    check(message.body.logprobs.content, engine);
    const streamed = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages, stream: true, ...wanted }),
    });
    const chunks = readEvents(await streamed.text()).flatMap(({ choices = [] }) => choices);
    check(
      chunks.flatMap(({ logprobs }) => logprobs?.content ?? []),
      engine,
    );
  });

  it("of completions are mappings, the sampled token among them", async () => {
    const { engine, post } = await open({ engine: { reply: () => "abc" } });
    const { body } = await post("/v1/completions", { prompt: "x", max_tokens: 9, logprobs: 2 });
    const { tokens, token_logprobs, top_logprobs } = body.choices[0].logprobs;
    const likeliest = engine.listLikeliest([...engine.tokenize("x")], 2);
    expect(top_logprobs[0]).toEqual({
      [tokens[0]]: token_logprobs[0],
      ...Object.fromEntries(likeliest.map(({ id, logprob }) => [engine.detokenize([id]), logprob])),
    });
    expect(top_logprobs).toHaveLength(tokens.length);
    const { body: plain } = await post("/v1/completions", { prompt: "x", max_tokens: 9, logprobs: 0 });
    expect(plain.choices[0].logprobs.top_logprobs).toBeNull();
  });
});

describe("completions", () => {
  it("go on from text or tokens as they are, several at once", async () => {
    const { url, post } = await open({ engine: { reply: ({ text }) => `<${text}>` } });
    const { body } = await post("/v1/completions", {
      prompt: ["ab", "c"],
      n: 2,
      max_tokens: 50,
      return_token_ids: true,
      logprobs: 1,
    });
    expect(body.choices.map(({ text }: { text: string }) => text)).toEqual(["<ab>", "<ab>", "<c>", "<c>"]);
    expect(body.choices[0]).toMatchObject({
      finish_reason: "stop",
      prompt_token_ids: [97, 98],
      token_ids: [60, 97, 98, 62, 258],
      logprobs: { tokens: ["<", "a", "b", ">", "<|im_end|>"], text_offset: [0, 1, 2, 3, 4] },
    });
    expect(body.choices[0].logprobs.token_logprobs).toHaveLength(5);
    expect(body.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 18 });
    const byTokens = await post("/v1/completions", { prompt: [97, 98], max_tokens: 2 });
    expect(byTokens.body.choices[0]).toMatchObject({ text: "<a", finish_reason: "length" });
    const streamed = await fetch(`${url}/v1/completions`, {
      method: "POST",
      body: JSON.stringify({ prompt: "x", stream: true, stream_options: { include_usage: true } }),
    });
    const events = readEvents(await streamed.text());
    expect(
      events
        .slice(0, -1)
        .flatMap(({ choices }) => choices.map(({ text }: { text: string }) => text))
        .join(""),
    ).toBe("<x>");
    expect(events.at(-2).usage.completion_tokens).toBe(4);
    for (const prompt of ["", [], [5_000], "x".repeat(9000)])
      expect((await post("/v1/completions", { prompt })).status).toBe(400);
  });
});

describe("models", () => {
  it("are one, under any name", async () => {
    const { url } = await open();
    const listed = await (await fetch(`${url}/v1/models`)).json();
    expect(listed).toMatchObject({ object: "list", data: [{ id: "fake", object: "model", max_model_len: 4096 }] });
    expect(await (await fetch(`${url}/v1/models/org/name`)).json()).toMatchObject({ id: "fake" });
  });
});
