import { DataError } from "@cria/core";
import { FakeEngine } from "@cria/core/testing";
import { ChatSession } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { ContextOverflowError } from "@langchain/core/errors";
import { AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { CriaMetadata } from "../describe-answer.js";
import { type Script, scriptChat, writeCall } from "../testing/scripted-chat.js";
import { chatModel } from "./chat-model.js";
import { describeCallChunk } from "./describe-message.js";

const double = tool(({ x }) => String(2 * x), {
  name: "double",
  description: "Doubles.",
  schema: z.object({ x: z.number() }),
});
const slowNow = tool(
  async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return "noon";
  },
  { name: "now", description: "Tells the time.", schema: z.object({}) },
);
const broken = '<tool_call>{"name": "double", "arguments": {"x": }}</tool_call>';

function open(script: Script) {
  const chat = scriptChat(script);
  return { chat, model: chatModel(chat, { temperature: 0.5, maxTokens: 50 }) };
}

/** Calls both tools at once, then says what they answered. */
const agentScript: Script = ({ messages }) => {
  const answers = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  return answers.length > 0
    ? `Answers: ${answers.join(", ")}`
    : `<think>Both.</think>I look.${writeCall("now", {})}${writeCall("double", { x: 4 })}`;
};

async function join(stream: AsyncIterable<AIMessageChunk>): Promise<{ whole: AIMessageChunk; pieces: string[] }> {
  const chunks: AIMessageChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const whole = chunks.slice(1).reduce((sum, chunk) => sum.concat(chunk), chunks[0]!);
  return { whole, pieces: chunks.map(({ text }) => text).filter(Boolean) };
}

describe("chatModel", () => {
  it("answers and streams the same: text, thoughts, usage, and what only the policy knows", async () => {
    const { model, chat } = open(() => "<think>Hm.</think>Hello, you there!");
    const messages = [new SystemMessage("Be brief."), new HumanMessage("Hi")];
    const whole = await model.invoke(messages, { seed: 3, stop: ["END"], temperature: 0.9 });
    const streamed = await join(await model.stream(messages));
    for (const message of [whole, streamed.whole]) {
      expect(message.text).toBe("Hello, you there!");
      expect(message.additional_kwargs).toEqual({ reasoning_content: "Hm." });
      expect(message.tool_calls).toEqual([]);
      expect(message.response_metadata).toMatchObject({ finish_reason: "stop", model_name: "scripted" });
      const cria = message.response_metadata.cria as CriaMetadata;
      expect(cria).toMatchObject({ session: "session", policyVersion: 3, reusedTokens: 2 });
      expect(cria.logprobs).toHaveLength(cria.tokenIds.length);
      expect(message.usage_metadata).toMatchObject({
        output_tokens: cria.tokenIds.length,
        input_token_details: { cache_read: 2 },
      });
    }
    expect(streamed.pieces.length).toBeGreaterThan(2);
    expect(chat.requests).toEqual([
      {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
        maxTokens: 50,
        stop: ["END"],
        sampling: { temperature: 0.9, seed: 3 },
      },
      { messages: expect.anything(), maxTokens: 50, sampling: { temperature: 0.5 } },
    ]);
  });

  it.each(["v1", "v2"] as const)("an agent of langgraph (%s) runs calls made at once", async (version) => {
    const { model, chat } = open(agentScript);
    const agent = createReactAgent({ llm: model, tools: [slowNow, double], prompt: "Use tools.", version });
    const { messages } = await agent.invoke({ messages: [new HumanMessage("Both.")] });
    expect(messages.at(-1)!.text).toBe("Answers: noon, 8");
    expect(chat.requests[1]!.tools).toEqual([
      {
        type: "function",
        function: {
          name: "now",
          description: "Tells the time.",
          parameters: { type: "object", properties: {}, additionalProperties: false },
        },
      },
      expect.objectContaining({ function: expect.objectContaining({ name: "double" }) }),
    ]);
    const call = (id: string, name: string, args: string) => ({
      id,
      type: "function",
      function: { name, arguments: args },
    });
    expect(chat.requests[1]!.messages.slice(1)).toEqual([
      { role: "user", content: "Both." },
      {
        role: "assistant",
        content: "I look.",
        reasoning_content: "Both.",
        tool_calls: [call("call0x0", "now", "{}"), call("call0x1", "double", '{"x":4}')],
      },
      { role: "tool", name: "now", tool_call_id: "call0x0", content: "noon" },
      { role: "tool", name: "double", tool_call_id: "call0x1", content: "8" },
    ]);
  });

  it("a stream of an agent has its tokens and its steps", async () => {
    const { model } = open(agentScript);
    const agent = createReactAgent({ llm: model, tools: [slowNow, double] });
    let text = "";
    for await (const [chunk] of await agent.stream(
      { messages: [new HumanMessage("Both.")] },
      { streamMode: "messages" },
    ))
      if (AIMessage.isInstance(chunk)) text += chunk.text;
    expect(text).toBe("I look.Answers: noon, 8");
  });

  it("calls that cannot be read are LangChain's invalid calls, and come back as they were written", async () => {
    const good = writeCall("double", { x: 1 });
    const { model, chat } = open((_, call) => (call < 2 ? `${broken}${good}` : "Sorry."));
    const question = new HumanMessage("?");
    const answers = [await model.invoke([question]), (await join(await model.stream([question]))).whole];
    for (const answer of answers) {
      expect(answer.tool_calls).toMatchObject([{ name: "double", args: { x: 1 } }]);
      expect(answer.invalid_tool_calls).toMatchObject([{ name: "double" }]);
      const result = new ToolMessage({ content: "2", tool_call_id: answer.tool_calls![0]!.id! });
      await model.invoke([question, answer, result]);
      const written = chat.requests.at(-1)!.messages[1]!.tool_calls!.map((call) => String(call.function.arguments));
      // A stream has it as JSON of a text, which says the same.
      expect(written[0]!.startsWith('"') ? JSON.parse(written[0]!) : written[0]).toBe(broken);
      expect(written[1]).toBe('{"x":1}');
    }
  });

  it("LangChain does not mend a call of a stream that is cut off", () => {
    for (const cut of ['{"name": "double", "arguments": {"x": 1', "{", '"text"']) {
      const call = { id: "1", type: "function" as const, function: { name: "double", arguments: cut } };
      const chunk = new AIMessageChunk({ content: "", tool_call_chunks: [describeCallChunk(0, call)] });
      expect(chunk.tool_calls).toEqual([]);
      expect(chunk.invalid_tool_calls).toHaveLength(1);
    }
  });

  it("takes the choice of a tool in every form", async () => {
    const { model, chat } = open(() => "Hi");
    const choices = ["auto", "none", "any", "double", { type: "function", function: { name: "double" } }];
    for (const tool_choice of choices) await model.bindTools([double], { tool_choice }).invoke("Hi");
    const given = chat.requests.map(({ toolChoice }) => toolChoice);
    expect(given).toEqual(["auto", "none", "required", { name: "double" }, { name: "double" }]);
    expect(() => model.bindTools([{ nothing: true }])).toThrow(/is no function/);
  });

  it("structured output: JSON by its schema, any JSON, or a call", async () => {
    const schema = z.object({ answer: z.number() });
    const { model, chat } = open(({ toolChoice }) =>
      toolChoice ? writeCall("reply", { answer: 5 }) : '{"answer": 5}',
    );
    expect(await model.withStructuredOutput(schema).invoke("2+3?")).toEqual({ answer: 5 });
    expect(await model.withStructuredOutput(schema, { method: "jsonMode" }).invoke("2+3?")).toEqual({ answer: 5 });
    const calling = model.withStructuredOutput(schema, { method: "functionCalling", name: "reply", includeRaw: true });
    expect(await calling.invoke("2+3?")).toMatchObject({ parsed: { answer: 5 }, raw: { type: "ai" } });
    const [json, any, call] = chat.requests;
    expect(json!.responseFormat).toMatchObject({ type: "json_schema", name: "extract", schema: { type: "object" } });
    expect(any!.responseFormat).toEqual({ type: "json_object" });
    expect(call).toMatchObject({ toolChoice: { name: "reply" }, tools: [{ function: { name: "reply" } }] });
    const wrong = chatModel(scriptChat(() => '{"answer": "five"}'));
    await expect(wrong.withStructuredOutput(schema).invoke("?")).rejects.toThrow();
  });

  it("takes images of users and tools; refuses other media, which are named where a tool shows them", async () => {
    const { model, chat } = open(() => "Hi");
    const url = "data:image/png;base64,AA";
    const sound = { type: "input_audio", input_audio: {} };
    await expect(model.invoke([new HumanMessage({ content: [sound] })])).rejects.toThrow(/expected: text, or an image/);
    const asked = new HumanMessage({
      content: [
        { type: "image_url", image_url: { url } },
        { type: "image_url", image_url: url },
        { type: "image", source_type: "base64", data: "AA", mime_type: "image/png" },
        { type: "text", text: "a" },
      ],
    });
    const seen = new ToolMessage({ tool_call_id: "1", content: [{ type: "text", text: "see" }, sound] });
    await model.invoke([asked, seen]);
    const image = (source: object) => ({ type: "image", image: source });
    expect(chat.requests[0]!.messages.map(({ content }) => content)).toEqual([
      [image({ url }), image({ url }), image({ data: "AA" }), { type: "text", text: "a" }],
      "see\n[input_audio]",
    ]);
  });

  it("a conversation that is too long is LangChain's overflow; a late failure breaks the stream", async () => {
    const tooLong = new DataError("is too long", { code: "chat/context-length", subject: "messages" });
    const early = chatModel({ name: "early", complete: () => Promise.reject(tooLong) });
    const overflow = await early.invoke("Hi").catch((error: unknown) => error);
    expect(ContextOverflowError.isInstance(overflow)).toBe(true);
    expect(overflow).toMatchObject({ cause: tooLong });
    await expect(join(await open(() => new Error("late")).model.stream("Hi"))).rejects.toThrow("late");
  });

  it("leaving or aborting ends the call", async () => {
    const signals: AbortSignal[] = [];
    const chat = scriptChat(() => "word ".repeat(2000));
    const watched: typeof chat = {
      ...chat,
      complete: (request, options) => {
        signals.push(options!.signal!);
        return chat.complete(request, options);
      },
    };
    const model = chatModel(watched);
    for await (const _ of await model.stream("Hi")) break;
    expect(signals[0]!.aborted).toBe(true);
    const controller = new AbortController();
    const aborted = model.invoke("Hi", { signal: controller.signal });
    controller.abort();
    await expect(aborted).rejects.toThrow(/abort/i);
  });
});

it("an agent of langgraph on the policy's session is one conversation, whose tokens are never made again", async () => {
  const engine = new FakeEngine({
    latencyMs: 1,
    reply: ({ text }) => (text.includes("<tool_response>") ? "It is 8." : `I look.\n${writeCall("double", { x: 4 })}`),
  });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const session = new ChatSession({ engine, tokenizer, name: "fake", format: "hermes", seed: 7 });
  const agent = createReactAgent({ llm: chatModel(session), tools: [double] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("4?")] });
  expect(messages.at(-1)!.text).toBe("It is 8.");
  for await (const _ of await agent.stream({ messages: [new HumanMessage("4?")] }, { streamMode: "messages" }));
  expect(session.metrics).toMatchObject({ chat_calls: 4, chat_roots: 1, chat_branches: 0, chat_siblings: 1 });
  session.dispose();
  expect(engine.counts.created).toBe(engine.counts.disposed);
});
