import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import type { Client } from "./client.js";
import { type Place, type Topic, writeCall } from "./topic.js";

const open = ({ url, apiKey, model }: Place) =>
  createOpenAICompatible({
    name: "cria",
    baseURL: `${url}/v1`,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  })(model);

const makeTools = ({ tools, call }: Topic) =>
  Object.fromEntries(
    Object.entries(tools).map(([name, { description, parameters }]) => [
      name,
      tool({ description, inputSchema: jsonSchema<object>(parameters), execute: (input) => call(name, input) }),
    ]),
  );

export const aiSdk: Client = {
  name: "`ai` + `@ai-sdk/openai-compatible`",
  async talk(place, topic, stream) {
    const { system, question: prompt } = topic;
    const options = {
      model: open(place),
      tools: makeTools(topic),
      system,
      prompt,
      stopWhen: stepCountIs(5),
      maxRetries: 0,
    };
    const result = stream ? streamText(options) : await generateText(options);
    const [text, steps, usage] = await Promise.all([result.text, result.steps, result.totalUsage]);
    return {
      text,
      calls: steps
        .map(({ toolCalls }) => toolCalls.map(({ toolName, input }) => writeCall(toolName, input)))
        .filter((calls) => calls.length > 0),
      usage: { input: usage.inputTokens!, output: usage.outputTokens! },
      thoughts: steps.map(({ reasoningText = "" }) => reasoningText).join(""),
    };
  },
  async ask(place, prompt, { temperature, signal }) {
    return (await generateText({ model: open(place), prompt, temperature, abortSignal: signal, maxRetries: 0 })).text;
  },
  async look(place, image, question) {
    const content = [
      { type: "image" as const, image },
      { type: "text" as const, text: question },
    ];
    return (await generateText({ model: open(place), messages: [{ role: "user", content }] })).text;
  },
  readFailure(error) {
    if (!APICallError.isInstance(error)) return { kind: "other", status: undefined, message: String(error) };
    const { statusCode: status, message } = error;
    const { code } = (error.data as { error: { code: string } }).error;
    if (status === 401) return { kind: "wrong key", status, message };
    return { kind: code === "context_length_exceeded" ? "too long" : "wrong request", status, message };
  },
  async json(place) {
    const schema = z.object({ city: z.string(), degrees: z.number() });
    const prompt = "The weather, please.";
    const { output } = await generateText({ model: open(place), prompt, output: Output.object({ schema }) });
    return output;
  },
  lacks: {
    logprobs: "This client does not read logprobs.",
    continued: "This API sends the whole conversation each time.",
    counting: "This API counts no tokens beforehand.",
    models: "This client lists no models.",
  },
};
