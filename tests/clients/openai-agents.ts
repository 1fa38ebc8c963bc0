import { Agent, type AgentInputItem, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import type { Client } from "./client.js";
import { readOpenAiFailure } from "./openai-failure.js";
import { type Place, type Topic, toAddress, weather, writeCall } from "./topic.js";

// It would send traces to its maker.
setTracingDisabled(true);

const open = ({ url, apiKey }: Place) =>
  new Runner({
    modelProvider: new OpenAIProvider({
      openAIClient: new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 }) as never,
      useResponses: true,
    }),
    tracingDisabled: true,
  });

const makeTools = ({ tools, call }: Topic) =>
  Object.entries(tools).map(([name, { description, parameters }]) =>
    tool({
      name,
      description,
      parameters: { ...parameters, additionalProperties: true },
      strict: false,
      execute: async (input) => call(name, input),
    }),
  );

/** The client keeps summaries of thoughts, and the item's other fields next to them. */
function readThoughts(providerData: unknown): string[] {
  const { content = [] } = (providerData ?? {}) as { content?: { text: string }[] };
  return content.map(({ text }) => text);
}

export const openaiAgents: Client = {
  name: "`@openai/agents`",
  async talk(place, topic, stream) {
    const { system: instructions, question } = topic;
    const agent = new Agent({ name: "talk", model: place.model, instructions, tools: makeTools(topic) });
    const runner = open(place);
    const result = stream ? await runner.run(agent, question, { stream: true }) : await runner.run(agent, question);
    if ("completed" in result) {
      for await (const event of result) void event;
      await result.completed;
    }
    const calls = result.rawResponses.map(({ output }) =>
      output.flatMap((item) => (item.type === "function_call" ? writeCall(item.name, JSON.parse(item.arguments)) : [])),
    );
    const thoughts = result.rawResponses
      .flatMap(({ output }) => output)
      .flatMap((item) => (item.type === "reasoning" ? readThoughts(item.providerData) : []));
    const { inputTokens, outputTokens } = result.runContext.usage;
    return {
      text: result.finalOutput as string,
      calls: calls.filter((each) => each.length > 0),
      usage: { input: inputTokens, output: outputTokens },
      thoughts: thoughts.join(""),
    };
  },
  async ask(place, question, { temperature, signal }) {
    const agent = new Agent({ name: "plain", model: place.model, modelSettings: { temperature } });
    return (await open(place).run(agent, question, { signal })).finalOutput as string;
  },
  async look(place, image, question) {
    const agent = new Agent({ name: "look", model: place.model });
    const content = [
      { type: "input_image" as const, image: toAddress(image) },
      { type: "input_text" as const, text: question },
    ];
    return (await open(place).run(agent, [{ role: "user", content }])).finalOutput as string;
  },
  readFailure: readOpenAiFailure,
  async json(place) {
    const outputType = z.object({ city: z.string(), degrees: z.number() });
    const agent = new Agent({ name: "json", model: place.model, outputType });
    return (await open(place).run(agent, "The weather, please.")).finalOutput;
  },
  async continued(place) {
    const tools = makeTools(weather);
    const agent = new Agent({ name: "talk", model: place.model, tools, toolUseBehavior: "stop_on_first_tool" });
    const runner = open(place);
    const first = await runner.run(agent, weather.question);
    const outputs: AgentInputItem[] = first.newItems.flatMap((item) =>
      item.type === "tool_call_output_item" ? (item.rawItem as AgentInputItem) : [],
    );
    const second = await runner.run(agent, outputs, { previousResponseId: first.lastResponseId });
    return second.rawResponses.flatMap(({ output }) =>
      output.flatMap((item) => (item.type === "function_call" ? writeCall(item.name, JSON.parse(item.arguments)) : [])),
    );
  },
  lacks: {
    logprobs: "This client does not read logprobs.",
    counting: "This API counts no tokens beforehand.",
    models: "This client lists no models.",
  },
};
