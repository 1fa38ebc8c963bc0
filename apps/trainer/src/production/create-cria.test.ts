import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel } from "@cria/engine";
import { generateObject, generateText, type ModelMessage, streamText, tool } from "ai";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { embeddedPolicy } from "../assets/embedded-policy.js";
import { createCria } from "./create-cria.js";
import type { CreateCriaOptions } from "./create-cria-options.js";

const folder = mkdtempSync(join(tmpdir(), "cria-production-"));
afterAll(() => rmSync(folder, { recursive: true }));

const open = (options: Partial<CreateCriaOptions> = {}) =>
  createCria({ model: embeddedPolicy, threads: 1, device: "cpu", contextSize: 512, seed: 3, ...options });
const question = "There are 70 marbles in a box and 28 marbles in a bag. How many marbles in total?";
const calculator = tool({ description: "Computes.", inputSchema: z.object({ expression: z.string() }) });

describe("createCria", () => {
  it("refuses unknown options, and a missing model", () => {
    const loose = (options: object) => () => createCria(options as CreateCriaOptions);
    const code = "config/unknown-key";
    expect(loose({ model: "m.gguf", adaptor: "a.gguf" })).toThrow(
      expect.objectContaining({ code, expected: 'perhaps "adapter"' }),
    );
    expect(loose({})).toThrow(expect.objectContaining({ code: "config/bad-value", subject: "createCria: model" }));
  });

  it("answers and streams the same with the same seed; a conversation that goes on keeps its tokens", async () => {
    const [one, two] = [open(), open()];
    try {
      const ask = { prompt: question, tools: { calculator }, maxOutputTokens: 40 };
      const whole = await generateText({ model: one(), ...ask });
      const streamed = streamText({ model: two("cria-tiny"), ...ask });
      expect(await streamed.text).toBe(whole.text);
      const known = whole.providerMetadata!.cria as { tokenIds: number[]; logprobs: number[] };
      expect((await streamed.providerMetadata)!.cria).toMatchObject({ tokenIds: known.tokenIds });
      expect(known.logprobs).toHaveLength(known.tokenIds.length);
      expect(known.logprobs.every((logprob) => logprob <= 0)).toBe(true);
      expect(whole.usage.outputTokens).toBe(known.tokenIds.length);

      const messages: ModelMessage[] = [
        { role: "user", content: question },
        ...whole.response.messages,
        ...whole.toolCalls.map(
          ({ toolCallId, toolName }): ModelMessage => ({
            role: "tool",
            content: [{ type: "tool-result", toolCallId, toolName, output: { type: "text", value: "98" } }],
          }),
        ),
        { role: "user", content: "Are you sure?" },
      ];
      const promptTokenIds = { providerOptions: { cria: { promptTokenIds: true } } };
      const next = await generateText({ model: one(), ...ask, prompt: undefined, messages, ...promptTokenIds });
      const prompt = (next.providerMetadata!.cria as { promptTokenIds: number[] }).promptTokenIds;
      const at = whole.usage.inputTokens!;
      expect(prompt.slice(at, at + known.tokenIds.length)).toEqual(known.tokenIds);
      // All but the last sampled token was already evaluated.
      expect(next.usage.inputTokenDetails.cacheReadTokens).toBe(at + known.tokenIds.length - 1);
    } finally {
      await Promise.all([one.dispose(), two.dispose()]);
    }
  });

  it("follows a form by a grammar: an object by its schema, a call that must be made", async () => {
    const cria = open({ sampling: { temperature: 1.5 } });
    const schema = z.object({ left: z.boolean(), size: z.enum(["small", "large"]) });
    const { object, providerMetadata } = await generateObject({ model: cria(), schema, prompt: question });
    expect(schema.parse(object)).toEqual(object);
    const { constrained, tokenIds } = providerMetadata!.cria as { constrained: number[]; tokenIds: number[] };
    expect(constrained).toHaveLength(tokenIds.length);
    expect(constrained).toContain(1);
    const { toolCalls } = await generateText({
      model: cria(),
      prompt: "Hi",
      tools: { calculator },
      toolChoice: "required",
      maxOutputTokens: 200,
    });
    expect(toolCalls[0]).toMatchObject({ toolName: "calculator", input: { expression: expect.any(String) } });
    await cria.dispose();
  });

  it("answers clients that take a fetch", async () => {
    const cria = open({ name: "mine" });
    const body = { model: "mine", messages: [{ role: "user", content: question }], max_tokens: 10 };
    const response = await cria.fetch("http://cria/v1/chat/completions", {
      method: "POST",
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      object: "chat.completion",
      usage: { completion_tokens: expect.any(Number) },
    });
    await cria.dispose();
    await expect(cria.fetch("http://cria/v1/models")).rejects.toMatchObject({
      code: "config/disposed",
      subject: "provider of mine",
    });
  });

  it("takes an adapter", async () => {
    const adapter = join(folder, "adapter.gguf");
    const engine = await loadModel({
      path: embeddedPolicy,
      threads: 1,
      device: "cpu",
      contextSize: 64,
      lora: { rank: 2 },
    });
    await engine.saveAdapter(adapter);
    await engine.dispose();
    const cria = open({ adapter, name: "mine" });
    const { text, response } = await generateText({ model: cria("mine"), prompt: question, maxOutputTokens: 10 });
    expect(text).not.toBe("");
    expect(response.modelId).toBe("mine");
    await cria.dispose();
  });

  it("reports a wrong file, and frees its resources", async () => {
    const cria = open({ model: join(folder, "none.gguf") });
    await expect(generateText({ model: cria(), prompt: "Hi" })).rejects.toMatchObject({
      code: "engine/file-not-found",
      subject: expect.stringContaining("none.gguf"),
    });
    const wrong = open({ format: "hermse" });
    await expect(generateText({ model: wrong(), prompt: "Hi" })).rejects.toMatchObject({
      code: "config/unknown-name",
      subject: "multi_turn.format",
    });
    await Promise.all([cria.dispose(), wrong.dispose()]);
  });
});
