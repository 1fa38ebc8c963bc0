import { encodePng } from "@cria/core";
import { type FakeContext, FakeEngine, type FakeReply } from "@cria/core/testing";
import { isAnswer } from "@cria/episodes/internal";
import { ChatSession, type ChatSessionOptions } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { APICallError, generateText, stepCountIs, streamText, ToolLoopAgent, type ToolSet, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { languageModel } from "./language-model.js";
import { writeCall } from "./testing/scripted-chat.js";

/** A policy that calls both tools at once, then reports their answers; it answers "plain" questions with its seed. */
function reply({ text, options }: FakeContext): FakeReply {
  const turns = text.split("<|im_start|>");
  const last = turns.at(-2)!;
  if (last.includes("plain")) return `seed ${options.seed}`;
  if (last.includes("broken")) return '<tool_call>{"name": "double", "arguments": {"x": }}</tool_call>';
  if (!last.includes("<tool_response>"))
    return `<think>I need both.</think>\n\nI look. ${writeCall("double", { x: 4 })}\n${writeCall("now", {})}`;
  return `Answers: ${[...text.matchAll(/<tool_response>\n([\s\S]*?)\n<\/tool_response>/g)].map(([, said]) => said).join(", ")}`;
}

const tools: ToolSet = {
  double: tool({
    inputSchema: z.object({ x: z.number() }),
    execute: async ({ x }) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return 2 * x;
    },
  }),
  now: tool({ inputSchema: z.object({}), execute: () => "noon" }),
};

function open({ latencyMs = 1, ...options }: Partial<ChatSessionOptions> & { latencyMs?: number } = {}) {
  const engine = new FakeEngine({ reply, latencyMs });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const session = new ChatSession({ engine, tokenizer, name: "fake", id: "s", format: "hermes", seed: 7, ...options });
  return { engine, session, model: languageModel(session) };
}

it("calls of the AI SDK that an agent forgot reject nothing once it has returned", async () => {
  // Longer than any test: no answer ends before the agent.
  const { engine, model, session } = open({ latencyMs: 600_000 });
  const settled: string[] = [];
  const forget = (name: string, promise: PromiseLike<unknown>) =>
    void promise.then(
      () => settled.push(name),
      () => settled.push(name),
    );
  const { textStream } = streamText({ model, prompt: "plain stream" });
  const read = async () => {
    for await (const _ of textStream);
  };
  forget("stream", read());
  forget("text", generateText({ model, prompt: "plain text" }));
  await expect.poll(() => engine.counts.inFlight + engine.counts.created).toBeGreaterThan(0);
  session.leave();
  forget("late", generateText({ model, prompt: "plain late" }));
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(settled).toEqual([]);
  session.dispose();
  expect(engine.counts.inFlight).toBe(0);
});

interface Cria {
  tokenIds: number[];
  logprobs: number[];
  promptTokenIds: number[];
}

describe("an agent on the policy's session", () => {
  it("sees the images of its prompt and of a tool's answer", async () => {
    const image = encodePng({ width: 32, height: 16, rgb: new Uint8Array(32 * 16 * 3) });
    const engine = new FakeEngine({
      images: true,
      reply: ({ text, turn }) =>
        turn === 0 ? writeCall("zoom", {}) : `${text.split("<|image_start|>").length - 1} seen`,
    });
    const session = new ChatSession({
      engine,
      tokenizer: DeltaTokenizer.forModel(engine),
      name: "fake",
      format: "hermes",
      seed: 7,
    });
    const zoom = tool({
      inputSchema: z.object({}),
      execute: () => Buffer.from(image).toString("base64"),
      toModelOutput: ({ output }) => ({
        type: "content",
        value: [{ type: "image-data", data: output, mediaType: "image/png" }],
      }),
    });
    const content = [
      { type: "image" as const, image },
      { type: "text" as const, text: "What is it?" },
    ];
    const { text } = await generateText({
      model: languageModel(session),
      tools: { zoom },
      stopWhen: stepCountIs(2),
      messages: [{ role: "user", content }],
    });
    expect(text).toBe("2 seen");
    expect(engine.images!.stats().encoded).toBe(1);
    session.dispose();
  });

  it.each(["generate", "stream"] as const)("%s: one conversation, whose tokens are never made again", async (way) => {
    const { session, model, engine } = open();
    const providerOptions = { cria: { promptTokenIds: true } };
    const agent = new ToolLoopAgent({ model, tools, instructions: "Use tools.", providerOptions });
    const result = await agent[way]({ prompt: "Both, please." });
    const steps = await result.steps;
    expect(await result.text).toBe("Answers: 8, noon");
    expect(steps).toHaveLength(2);
    expect(steps[0]!.reasoningText).toBe("I need both.");
    const [first, second] = steps.map((step) => step.providerMetadata!.cria as unknown as Cria);
    const whole = [...first!.promptTokenIds, ...first!.tokenIds];
    expect(second!.promptTokenIds.slice(0, whole.length)).toEqual(whole);
    expect(steps[1]!.usage.inputTokenDetails.cacheReadTokens).toBe(whole.length - 1);
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_roots: 1 });
    expect(session.metrics.chat_branches).toBe(0);
    session.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("a call that cannot be read is answered by the AI SDK, and the conversation goes on with its tokens", async () => {
    const { session, model } = open();
    const { steps } = await generateText({ model, tools, prompt: "broken", stopWhen: stepCountIs(2) });
    expect(steps[0]!.content.map(({ type }) => type)).toEqual(["tool-call", "tool-error"]);
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_roots: 1 });
    expect(session.metrics.chat_branches).toBe(0);
  });

  it("calls made at once, equal ones too, are answered one by one as they would be in turn", async () => {
    const { session, model } = open();
    const ask = (prompt: string) => generateText({ model, prompt });
    const said = await Promise.all([ask("plain a"), ask("plain b"), ask("plain a")]);
    const alone = open();
    for (const [i, prompt] of ["plain a", "plain b", "plain a"].entries())
      expect((await generateText({ model: alone.model, prompt })).text).toBe(said[i]!.text);
    expect(new Set(said.map(({ text }) => text)).size).toBe(3);
    expect(session.metrics.chat_calls).toBe(3);
    expect([...session.graph.roots.values()].every((root) => !isAnswer(root))).toBe(true);
  });

  it("a conversation that is too long, or has had its calls, is refused and not tried again", async () => {
    for (const [limits, code] of [
      [{ context: 10 }, "chat/context-length"],
      [{ calls: 0 }, "chat/too-many-calls"],
    ] as const) {
      const { model, session } = open({ limits });
      for (const ask of [
        () => generateText({ model, prompt: "plain, and longer than ten tokens" }),
        async () =>
          await model.doStream({ prompt: [{ role: "user", content: [{ type: "text", text: "plain text" }] }] }),
      ]) {
        const error = await ask().catch((thrown: unknown) => thrown);
        expect(APICallError.isInstance(error)).toBe(true);
        expect(error).toMatchObject({ isRetryable: false, data: { code } });
      }
      expect(session.refusal?.code).toBe(code);
    }
  });

  it("keeps a training's sampling, and warns", async () => {
    const warnings: string[] = [];
    const { model } = open({
      enforceSampling: true,
      sampling: { temperature: 1 },
      onWarning: (warning) => void warnings.push(warning),
    });
    await generateText({ model, prompt: "plain", temperature: 0.2 });
    expect(warnings).toEqual([expect.stringContaining("temperature 0.2 (here 1)")]);
  });

  it("an aborted stream frees its resources", async () => {
    const { model, engine, session } = open();
    const controller = new AbortController();
    const result = streamText({ model, prompt: "plain", abortSignal: controller.signal, onError: () => {} });
    controller.abort();
    const types = [];
    for await (const part of result.fullStream) types.push(part.type);
    expect(types.at(-1)).toBe("abort");
    session.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });
});
