import { DataError } from "@cria/core";
import {
  APICallError,
  generateObject,
  generateText,
  Output,
  stepCountIs,
  streamText,
  ToolLoopAgent,
  type ToolSet,
  tool,
} from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { languageModel } from "./language-model.js";
import { type Script, scriptChat, writeCall } from "./testing/scripted-chat.js";

// Results contain the warnings; the AI SDK would also print them.
globalThis.AI_SDK_LOG_WARNINGS = false;

const calculator = tool({
  description: "Computes.",
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => String(expression.split("+").reduce((sum, x) => sum + Number(x), 0)),
});
const clock = tool({
  description: "Tells the time.",
  inputSchema: z.object({}),
  execute: async () => {
    // Its answer comes last, though it was called first.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { hours: 12 };
  },
});

function open(script: Script) {
  const chat = scriptChat(script);
  return { chat, model: languageModel(chat) };
}

/** Calls both tools at once, then reports their answers. */
const agentScript: Script = ({ messages }, call) =>
  call % 2 === 0
    ? `<think>Let me see.</think>I look.\n${writeCall("clock", {})}\n${writeCall("calculator", { expression: "1+2" })}`
    : `It is ${messages
        .slice(-2)
        .map(({ content }) => content)
        .join(" and ")}.`;

describe("generateText", () => {
  it("gives text, reasoning, usage and the policy's own metadata", async () => {
    const { model, chat } = open(() => "<think>Hm.</think>\nHello!");
    const result = await generateText({
      model,
      system: "Be brief.",
      prompt: "Hi",
      maxOutputTokens: 50,
      temperature: 0.5,
      topP: 0.9,
      topK: 5,
      seed: 7,
      stopSequences: ["END"],
      providerOptions: { cria: { minP: 0.1, promptTokenIds: true, role: "x" } },
    });
    expect(result.text).toBe("Hello!");
    expect(result.reasoningText).toBe("Hm.");
    expect(result.finishReason).toBe("stop");
    expect(result.rawFinishReason).toBe("stop");
    expect(result.warnings).toEqual([]);
    expect(result.response).toMatchObject({ id: "node0", modelId: "scripted" });
    expect(chat.requests).toEqual([
      {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
        maxTokens: 50,
        stop: ["END"],
        sampling: { temperature: 0.5, topP: 0.9, topK: 5, minP: 0.1, seed: 7 },
        role: "x",
      },
    ]);
    const sampled = [..."<think>Hm.</think>\nHello!"].map((char) => char.codePointAt(0)!);
    const { promptTokenIds, ...metadata } = result.providerMetadata!.cria!;
    expect(metadata).toEqual({
      session: "session",
      node: "node0",
      policyVersion: 3,
      tokenIds: sampled,
      logprobs: sampled.map(() => -0.5),
      reusedTokens: 2,
    });
    expect(promptTokenIds).toHaveLength(result.usage.inputTokens!);
    expect(result.usage).toMatchObject({
      outputTokens: sampled.length,
      inputTokenDetails: { cacheReadTokens: 2, noCacheTokens: result.usage.inputTokens! - 2 },
    });
  });

  it("warns of settings without effect", async () => {
    const { model } = open(() => "Hi");
    const { warnings } = await generateText({
      model,
      prompt: "Hi",
      presencePenalty: 1,
      frequencyPenalty: 1,
      providerOptions: { cria: { beams: 4 } },
    });
    expect(warnings).toMatchObject([
      { type: "unsupported", feature: "providerOptions.cria.beams" },
      { type: "unsupported", feature: "presencePenalty" },
      { type: "unsupported", feature: "frequencyPenalty" },
    ]);
  });

  it("runs calls made at once and sends their answers back in the order of the calls", async () => {
    const { model, chat } = open(agentScript);
    const tools: ToolSet = { clock, calculator };
    const result = await generateText({ model, tools, prompt: "What?", stopWhen: stepCountIs(5) });
    expect(result.text).toBe('It is {"hours":12} and 3.');
    expect(result.steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    expect(chat.requests[0]!.tools).toEqual([
      {
        type: "function",
        function: {
          name: "clock",
          description: "Tells the time.",
          parameters: { type: "object", properties: {}, additionalProperties: false },
        },
      },
      expect.objectContaining({ function: expect.objectContaining({ name: "calculator" }) }),
    ]);
    const call = (id: string, name: string, args: string) => ({
      id,
      type: "function",
      function: { name, arguments: args },
    });
    expect(chat.requests[1]!.messages).toEqual([
      { role: "user", content: "What?" },
      {
        role: "assistant",
        content: "I look.",
        reasoning_content: "Let me see.",
        tool_calls: [call("call0x0", "clock", "{}"), call("call0x1", "calculator", '{"expression":"1+2"}')],
      },
      { role: "tool", name: "clock", tool_call_id: "call0x0", content: '{"hours":12}' },
      { role: "tool", name: "calculator", tool_call_id: "call0x1", content: "3" },
    ]);
  });

  it("answers a broken call with an error, and recognizes it later", async () => {
    const broken = '<tool_call>{"name": "calculator", "arguments": {"expression": }}</tool_call>';
    const { model, chat } = open((_, call) => (call === 0 ? broken : "Sorry."));
    const tools: ToolSet = { calculator };
    const { text } = await generateText({ model, tools, prompt: "1+2?", stopWhen: stepCountIs(3) });
    expect(text).toBe("Sorry.");
    const [, assistant, answer] = chat.requests[1]!.messages;
    expect(assistant).toMatchObject({ tool_calls: [{ function: { name: "calculator", arguments: broken } }] });
    expect(answer).toMatchObject({ role: "tool", content: expect.stringMatching(/calculator/) });
  });

  it("passes the choice of a tool on", async () => {
    const { model, chat } = open(() => "Hi");
    const call = { type: "function", name: "f", inputSchema: { type: "object" } } as const;
    const choices = [
      { type: "auto" },
      { type: "none" },
      { type: "required" },
      { type: "tool", toolName: "f" },
    ] as const;
    for (const toolChoice of choices) await model.doGenerate({ prompt: [], tools: [call], toolChoice });
    expect(chat.requests.map(({ toolChoice }) => toolChoice)).toEqual(["auto", "none", "required", { name: "f" }]);
  });

  it("leaves out tools that another provider would run, and says so", async () => {
    const { model, chat } = open(() => "Hi");
    const search = { type: "provider", id: "openai.web_search", name: "web_search", args: {} } as const;
    const { warnings } = await model.doGenerate({ prompt: [], tools: [search], toolChoice: { type: "auto" } });
    expect(warnings).toEqual([{ type: "unsupported", feature: "provider-defined tool openai.web_search" }]);
    expect(chat.requests).toEqual([{ messages: [] }]);
  });

  it("a refused request is not a server's error: it is not tried again", async () => {
    const refusal = new DataError("is too long", { code: "chat/context-length", subject: "messages" });
    const { model, chat } = open(() => refusal);
    const error = await generateText({ model, prompt: "Hi" }).catch((thrown: unknown) => thrown);
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 400, isRetryable: false, cause: refusal, data: { code: refusal.code } });
    expect(chat.requests).toHaveLength(1);
  });

  it("can be aborted", async () => {
    const controller = new AbortController();
    const { model } = open(() => {
      controller.abort();
      return "Never.";
    });
    await expect(generateText({ model, prompt: "Hi", abortSignal: controller.signal })).rejects.toMatchObject({
      name: "AbortError",
    });
  });
});

describe("structured output", () => {
  const schema = z.object({ answer: z.number() });
  const expected = {
    type: "json_schema",
    schema: expect.objectContaining({ type: "object", required: ["answer"] }),
  };

  it("asks for JSON by its schema, and reads it", async () => {
    const { model, chat } = open(() => '{"answer": 5}');
    const { object } = await generateObject({ model, schema, prompt: "2+3?" });
    const { output } = await generateText({ model, output: Output.object({ schema }), prompt: "2+3?" });
    expect([object, output]).toEqual([{ answer: 5 }, { answer: 5 }]);
    for (const { responseFormat } of chat.requests) {
      expect(responseFormat).toMatchObject(expected);
      expect(responseFormat).not.toHaveProperty("schema.$schema");
    }
  });

  it("asks for any JSON without a schema", async () => {
    const { model, chat } = open(() => "[1]");
    await generateObject({ model, output: "no-schema", prompt: "?" });
    expect(chat.requests[0]!.responseFormat).toEqual({ type: "json_object" });
  });
});

describe("streamText", () => {
  it("streams reasoning, text and calls as they come, and the policy's own metadata at the end", async () => {
    const { model } = open(agentScript);
    const tools: ToolSet = { clock, calculator };
    const result = streamText({ model, tools, prompt: "What?", stopWhen: stepCountIs(5) });
    const types: string[] = [];
    let text = "";
    for await (const part of result.fullStream) {
      if (types.at(-1) !== part.type) types.push(part.type);
      if (part.type === "text-delta") text += part.text;
    }
    expect(types.slice(0, 12)).toEqual([
      "start",
      "start-step",
      "reasoning-start",
      "reasoning-delta",
      "reasoning-end",
      "text-start",
      "text-delta",
      "text-end",
      "tool-input-start",
      "tool-input-delta",
      "tool-input-end",
      "tool-call",
    ]);
    expect(text).toBe('I look.It is {"hours":12} and 3.');
    expect(await result.text).toBe('It is {"hours":12} and 3.');
    expect(await result.finishReason).toBe("stop");
    expect(await result.providerMetadata).toMatchObject({ cria: { node: "node1", policyVersion: 3 } });
  });

  it("sends its stream back as one message, for any parts", async () => {
    const { model, chat } = open((_, call) =>
      call === 0 ? `a <think>b</think>c${writeCall("calculator", { expression: "1" })}` : "done",
    );
    await streamText({ model, tools: { calculator }, prompt: "What?", stopWhen: stepCountIs(5) }).text;
    expect(chat.requests[1]!.messages[1]).toMatchObject({ content: "a c", reasoning_content: "b" });
  });

  it("a call that fails before it says anything rejects; one that fails later says so in its stream", async () => {
    const early = languageModel({ ...scriptChat(() => ""), complete: () => Promise.reject(new Error("early")) });
    await expect(early.doStream({ prompt: [] })).rejects.toThrow("early");
    const late = open(() => new Error("late")).model;
    const errors: unknown[] = [];
    const { fullStream } = streamText({ model: late, prompt: "Hi", onError: ({ error }) => void errors.push(error) });
    const parts = [];
    for await (const part of fullStream) parts.push(part);
    expect(errors).toMatchObject([{ message: "late" }]);
    expect(parts.at(-1)).toMatchObject({ type: "finish", finishReason: "error" });
  });

  it("leaving or aborting a stream ends the call", async () => {
    const endless = `${"word ".repeat(2000)}`;
    for (const leave of ["cancel", "abort"] as const) {
      const controller = new AbortController();
      let signal: AbortSignal | undefined;
      const chat = scriptChat(() => endless);
      const complete: typeof chat.complete = (request, options) => {
        signal = options?.signal;
        return chat.complete(request, options);
      };
      const model = languageModel({ ...chat, complete });
      const { stream } = await model.doStream({
        prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
        abortSignal: controller.signal,
      });
      const reader = stream.getReader();
      await reader.read();
      if (leave === "cancel") await reader.cancel();
      else controller.abort();
      expect(signal?.aborted).toBe(true);
      if (leave === "abort") {
        const readAll = async () => {
          while (!(await reader.read()).done);
        };
        await expect(readAll()).rejects.toMatchObject({ name: "AbortError" });
      }
    }
  });
});

it("an agent with a loop of its own works unchanged, streaming and not", async () => {
  const tools: ToolSet = { clock, calculator };
  const { model } = open(agentScript);
  const agent = new ToolLoopAgent({ model, tools, instructions: "Use tools." });
  expect((await agent.generate({ prompt: "What?" })).text).toBe('It is {"hours":12} and 3.');
  const streamed = await agent.stream({ prompt: "What?" });
  expect(await streamed.text).toBe('It is {"hours":12} and 3.');
});
