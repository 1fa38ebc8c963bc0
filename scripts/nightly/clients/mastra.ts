import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { APICallError } from "ai";
import { z } from "zod";
import type { Client } from "./client.js";
import { type Place, type Topic, writeCall } from "./topic.js";

const open = ({ url, apiKey, model }: Place, topic?: Topic) =>
  new Agent({
    id: "talk",
    name: "talk",
    instructions: topic?.system ?? "",
    // `{ id, url, apiKey }` works too, but requests no usage in streams.
    model: createOpenAICompatible({
      name: "cria",
      baseURL: `${url}/v1`,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })(model),
    tools: topic ? makeTools(topic) : {},
    maxRetries: 0,
  });

const makeTools = ({ tools, call }: Topic) =>
  Object.fromEntries(
    Object.entries(tools).map(([id, { description, parameters }]) => {
      const inputSchema = z.object(Object.fromEntries(parameters.required.map((name) => [name, z.string()])));
      return [id, createTool({ id, description, inputSchema, execute: async (input) => call(id, input) })];
    }),
  );

export const mastra: Client = {
  name: "`@mastra/core` + `@ai-sdk/openai-compatible`",
  async talk(place, topic, stream) {
    const agent = open(place, topic);
    const options = { maxSteps: 5 };
    const result = stream ? await agent.stream(topic.question, options) : await agent.generate(topic.question, options);
    if ("fullStream" in result) for await (const part of result.fullStream) void part;
    const [steps, usage] = await Promise.all([result.steps, result.totalUsage]);
    return {
      // `result.text` is that of all steps.
      text: steps.at(-1)!.text,
      calls: steps
        .map(({ toolCalls }) => toolCalls.map(({ payload }) => writeCall(payload.toolName, payload.args)))
        .filter((calls) => calls.length > 0),
      usage: { input: usage.inputTokens!, output: usage.outputTokens! },
      thoughts: steps.map(({ reasoningText }) => reasoningText ?? "").join(""),
    };
  },
  async ask(place, question, { temperature, signal }) {
    const result = await open(place).generate(question, { abortSignal: signal, modelSettings: { temperature } });
    if (signal?.aborted) throw signal.reason;
    return result.text;
  },
  async look(place, image, question) {
    const content = [
      { type: "image" as const, image, mediaType: "image/png" },
      { type: "text" as const, text: question },
    ];
    return (await open(place).generate([{ role: "user", content }])).text;
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
    return (await open(place).generate("The weather, please.", { structuredOutput: { schema } })).object;
  },
  lacks: {
    logprobs: "This client does not read logprobs.",
    continued: "This API sends the whole conversation each time.",
    counting: "This API counts no tokens beforehand.",
    models: "This client lists no models.",
  },
};
