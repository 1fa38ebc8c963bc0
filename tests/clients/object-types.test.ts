import type * as Messages from "@anthropic-ai/sdk/resources/messages";
import type * as Responses from "openai/resources/responses/responses";
import { afterAll, beforeAll, expect, it } from "vitest";
import { HELLO, KEY, openScripted, type ScriptedServer, THOUGHT } from "./scripted-server.js";
import { weather } from "./topic.js";

/**
 * The fields that an object of that type always has, and all of them: the compiler finds fields that a newer client
 * adds.
 */
type Always<T> = { [K in keyof T as undefined extends T[K] ? never : K]-?: true };

const response: Omit<Always<Responses.Response>, "output_text"> = {
  id: true,
  created_at: true,
  error: true,
  incomplete_details: true,
  instructions: true,
  metadata: true,
  model: true,
  object: true,
  output: true,
  parallel_tool_calls: true,
  temperature: true,
  tool_choice: true,
  tools: true,
  top_p: true,
};
const responseUsage: Always<Responses.ResponseUsage> = {
  input_tokens: true,
  input_tokens_details: true,
  output_tokens: true,
  output_tokens_details: true,
  total_tokens: true,
};
const inputDetails: Always<Responses.ResponseUsage.InputTokensDetails> = {
  cached_tokens: true,
  cache_write_tokens: true,
};
const outputDetails: Always<Responses.ResponseUsage.OutputTokensDetails> = { reasoning_tokens: true };
const items: {
  message: Always<Responses.ResponseOutputMessage>;
  reasoning: Always<Responses.ResponseReasoningItem>;
  function_call: Always<Responses.ResponseFunctionToolCall>;
} = {
  message: { id: true, content: true, role: true, status: true, type: true },
  reasoning: { id: true, summary: true, type: true },
  function_call: { arguments: true, call_id: true, name: true, type: true },
};
const outputText: Always<Responses.ResponseOutputText> = { annotations: true, text: true, type: true };
const logprob: Always<Responses.ResponseOutputText.Logprob> = {
  token: true,
  bytes: true,
  logprob: true,
  top_logprobs: true,
};

const message: Always<Messages.Message> = {
  id: true,
  container: true,
  content: true,
  diagnostics: true,
  model: true,
  role: true,
  stop_details: true,
  stop_reason: true,
  stop_sequence: true,
  type: true,
  usage: true,
};
const messageUsage: Always<Messages.Usage> = {
  cache_creation: true,
  cache_creation_input_tokens: true,
  cache_read_input_tokens: true,
  inference_geo: true,
  input_tokens: true,
  output_tokens: true,
  output_tokens_details: true,
  server_tool_use: true,
  service_tier: true,
  speed: true,
};
const deltaUsage: Always<Messages.MessageDeltaUsage> = {
  cache_creation_input_tokens: true,
  cache_read_input_tokens: true,
  input_tokens: true,
  output_tokens: true,
  output_tokens_details: true,
  server_tool_use: true,
};
const blocks: {
  text: Always<Messages.TextBlock>;
  thinking: Always<Messages.ThinkingBlock>;
  tool_use: Always<Messages.ToolUseBlock>;
} = {
  text: { citations: true, text: true, type: true },
  thinking: { signature: true, thinking: true, type: true },
  // `input` may be anything, so the compiler cannot ask for it.
  tool_use: { id: true, caller: true, name: true, type: true },
};

let scripted: ScriptedServer;
beforeAll(async () => {
  scripted = await openScripted();
});
afterAll(() => scripted.server.close());

// biome-ignore lint/suspicious/noExplicitAny: it is what the tests look at.
type Json = any;

async function post(path: string, body: object): Promise<string> {
  const answer = await fetch(scripted.server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}` },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
  return answer.text();
}

const readStream = (text: string): Json[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!) as Json);

function expectAll(value: object, fields: object): void {
  expect(Object.keys(value)).toEqual(expect.arrayContaining(Object.keys(fields)));
}

const parameters = { type: "object", properties: { city: { type: "string" } } };
const asked = {
  input: weather.question,
  tools: ["weather", "clock"].map((name) => ({ type: "function", name, parameters })),
  logprobs: true,
  top_logprobs: 1,
};

it("responses, whole and in their events, have every field of the client's types", async () => {
  const whole = JSON.parse(await post("/v1/responses", asked)) as Json;
  const events = readStream(await post("/v1/responses", { ...asked, stream: true }));
  const early = events.filter(({ type }) => /created|in_progress/.test(type)).map(({ response: told }) => told);
  expect(early).toHaveLength(2);
  for (const told of [whole, ...early, events.at(-1).response]) {
    expectAll(told, response);
    // Optional fields are never null.
    expect([told.usage, told.user]).not.toContain(null);
  }
  for (const { usage, output } of [whole, events.at(-1).response]) {
    expectAll(usage, responseUsage);
    expectAll(usage.input_tokens_details, inputDetails);
    expectAll(usage.output_tokens_details, outputDetails);
    expect(usage.output_tokens_details.reasoning_tokens).toBeGreaterThan(THOUGHT.length / 4);
    expect(usage.output_tokens_details.reasoning_tokens).toBeLessThan(usage.output_tokens);
    expect(output.map(({ type }: Json) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
    for (const item of output) expectAll(item, items[item.type as keyof typeof items]);
    const [part] = output[1].content;
    expectAll(part, outputText);
    for (const entry of [...part.logprobs, ...part.logprobs.flatMap((each: Json) => each.top_logprobs)]) {
      expect(entry.bytes).toBeInstanceOf(Array);
    }
    for (const entry of part.logprobs) expectAll(entry, logprob);
  }
});

it("messages, whole and in their events, have every field of the client's types", async () => {
  const body = {
    max_tokens: 500,
    thinking: { type: "enabled", budget_tokens: 100 },
    messages: [{ role: "user", content: weather.question }],
    tools: ["weather", "clock"].map((name) => ({ name, input_schema: parameters })),
  };
  const whole = JSON.parse(await post("/v1/messages", body)) as Json;
  const events = readStream(await post("/v1/messages", { ...body, stream: true }));
  const find = (name: string) => events.filter(({ type }) => type === name);
  const [started] = find("message_start");
  for (const told of [whole, started.message]) {
    expectAll(told, message);
    expectAll(told.usage, messageUsage);
  }
  expect(whole.usage.output_tokens_details.thinking_tokens).toBeGreaterThan(0);
  const streamed = find("content_block_start").map(({ content_block }) => content_block);
  expect(streamed.map(({ type }) => type)).toEqual(whole.content.map(({ type }: Json) => type));
  for (const block of [...whole.content, ...streamed]) expectAll(block, blocks[block.type as keyof typeof blocks]);
  const [delta] = find("message_delta");
  expectAll(delta.usage, deltaUsage);
  const end: Always<Messages.RawMessageDeltaEvent.Delta> = {
    container: true,
    stop_details: true,
    stop_reason: true,
    stop_sequence: true,
  };
  expectAll(delta.delta, end);
});

it("an answer that was cut has its last item incomplete, streamed or not", async () => {
  const cut = { input: "Hello", max_output_tokens: 3 };
  const whole = JSON.parse(await post("/v1/responses", cut)) as Json;
  const events = readStream(await post("/v1/responses", { ...cut, stream: true }));
  const done = events.find(({ type }) => type === "response.output_item.done");
  for (const { status } of [whole.output.at(-1), events.at(-1).response.output.at(-1), done.item])
    expect(status).toBe("incomplete");
  expect(HELLO.startsWith(whole.output[0].content[0].text)).toBe(true);
  const inThought = JSON.parse(await post("/v1/responses", { ...asked, max_output_tokens: 12 })) as Json;
  expect(inThought.output).toMatchObject([{ type: "reasoning", status: "incomplete" }]);
});
