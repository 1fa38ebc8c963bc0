import { FakeEngine, type FakeEngineOptions } from "@cria/core/testing";
import { ChatPool, ChatSession, type ChatSessionOptions } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { describe, expect, it } from "vitest";
import { echo } from "../testing/open-fake.js";
import { createFetch } from "./create-fetch.js";

function open(options: Partial<ChatSessionOptions> = {}, engineOptions: Partial<FakeEngineOptions> = {}) {
  const engine = new FakeEngine({ reply: echo, latencyMs: 1, ...engineOptions });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const session = new ChatSession({ engine, tokenizer, name: "policy", format: "hermes", seed: 7, ...options });
  const client = new OpenAI({ baseURL: "http://cria/v1", apiKey: "-", fetch: createFetch(session), maxRetries: 2 });
  return { engine, tokenizer, session, client };
}

/** Waits until abandoned calls have ended. */
async function settle({ counts }: FakeEngine): Promise<void> {
  while (counts.inFlight > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setImmediate(resolve));
}

const tools = [
  {
    type: "function" as const,
    function: {
      name: "look_up",
      parameters: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
    },
  },
];
const model = "policy";
const user = (content: string): ChatCompletionMessageParam => ({ role: "user", content });

describe("createFetch", () => {
  it("answers a client in this process: a conversation with a call keeps its tokens", async () => {
    const { client, session, engine } = open();
    const question = user("look up llama");
    const first = await client.chat.completions.create({ model, messages: [question], tools });
    const { message } = first.choices[0]!;
    const [call] = message.tool_calls!;
    expect(call).toMatchObject({ type: "function", function: { name: "look_up", arguments: '{"word":"llama"}' } });
    const answer = { role: "tool" as const, tool_call_id: call!.id, content: "an animal" };
    const second = await client.chat.completions.create({ model, messages: [question, message, answer], tools });
    expect(second.choices[0]!.message.content).toMatch(/an animal/);
    expect(second.usage!.prompt_tokens_details!.cached_tokens).toBeGreaterThanOrEqual(first.usage!.total_tokens - 1);
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_roots: 1 });
    session.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("streams, and frees the engine when a stream is left", async () => {
    const { client, engine, session } = open();
    const stream = await client.chat.completions.create({ model, messages: [user("hello")], stream: true });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toMatch(/^hello #\d+$/);
    const left = await client.chat.completions.create({ model, messages: [user("bye")], stream: true });
    for await (const _ of left) break;
    session.dispose();
    await settle(engine);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("rejects nothing once its agent has returned: no running, late or aborted call", async () => {
    const { client, session, engine } = open({}, { latencyMs: 60_000 });
    const settled: string[] = [];
    const forget = (text: string, more: object = {}) => {
      const end = new AbortController();
      const asked = client.chat.completions.create(
        { model, messages: [user(text)], ...more },
        { signal: end.signal, maxRetries: 0 },
      );
      asked.then(
        () => settled.push(text),
        () => settled.push(text),
      );
      return end;
    };
    forget("waits");
    const streamed = forget("streams", { stream: true });
    await expect.poll(() => engine.counts.inFlight).toBe(2);
    session.leave();
    forget("late");
    streamed.abort();
    await settle(engine);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(settled).toEqual([]);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("equal requests made at once each get an answer", async () => {
    const { client, session } = open();
    const ask = () => client.chat.completions.create({ model, messages: [user("same")] });
    const said = await Promise.all([ask(), ask()]);
    expect(new Set(said.map(({ choices }) => choices[0]!.message.content)).size).toBe(2);
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_siblings: 1 });
    const later = (await ask()).choices[0]!.message.content;
    expect(said.map(({ choices }) => choices[0]!.message.content)).not.toContain(later);
  });

  it("refuses in the client's own terms, once", async () => {
    const { client, session } = open({ limits: { context: 5 } });
    const error = await client.chat.completions
      .create({ model, messages: [user("too long")] })
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(session.refusal?.code).toBe("chat/context-length");
    const text = await client.completions.create({ model, prompt: "x" }).catch((thrown) => thrown);
    expect(text).toBeInstanceOf(OpenAI.BadRequestError);
    expect(text.code).toBe("chat/bad-request");
  });

  it("aborts with the client's signal", async () => {
    const { client, session, engine } = open({}, { latencyMs: 60_000 });
    const controller = new AbortController();
    const asked = client.chat.completions.create({ model, messages: [user("x")] }, { signal: controller.signal });
    const refused = expect(asked).rejects.toThrow(OpenAI.APIUserAbortError);
    while (engine.counts.inFlight === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    controller.abort();
    await refused;
    await settle(engine);
    session.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("lists its model, and works on a pool of conversations", async () => {
    const { engine, tokenizer } = open();
    const pool = new ChatPool({ engine, tokenizer, name: "pool", format: "hermes", seed: 7 });
    const client = new OpenAI({ baseURL: "http://cria/v1", apiKey: "-", fetch: createFetch(pool) });
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["pool"]);
    const { choices } = await client.chat.completions.create({ model: "pool", messages: [user("hi")], logprobs: true });
    expect(choices[0]!.message.content).toMatch(/^hi #\d+$/);
    expect(choices[0]!.logprobs!.content!.map(({ token }) => token).join("")).toContain("hi #");
    pool.dispose();
  });
});
