import { ContextOverflowError } from "@langchain/core/errors";
import type { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import type { Client } from "./client.js";
import { readOpenAiFailure } from "./openai-failure.js";
import { type Place, type Topic, toAddress, weather, writeCall } from "./topic.js";

const open = ({ url, apiKey, model }: Place, options: { temperature?: number; logprobs?: boolean } = {}) =>
  new ChatOpenAI({ model, apiKey, configuration: { baseURL: `${url}/v1` }, maxRetries: 0, ...options });

const makeTools = ({ tools, call }: Topic) =>
  Object.entries(tools).map(([name, { description, parameters }]) =>
    tool((input) => call(name, input), { name, description, schema: parameters }),
  );

export const langchain: Client = {
  name: "`@langchain/openai` + `@langchain/langgraph`",
  async talk(place, topic, stream) {
    const agent = createReactAgent({ llm: open(place), tools: makeTools(topic), prompt: topic.system });
    const input = { messages: [{ role: "user", content: topic.question }] };
    let messages: AIMessage[] = [];
    if (stream) {
      let pieces = 0;
      for await (const [mode, chunk] of await agent.stream(input, { streamMode: ["messages", "values"] })) {
        if (mode === "messages") pieces++;
        else messages = (chunk as { messages: AIMessage[] }).messages;
      }
      if (pieces < 6) throw new Error(`a stream of ${pieces} pieces`);
    } else messages = (await agent.invoke(input)).messages as AIMessage[];
    const answers = messages.filter(({ type }) => type === "ai");
    const sum = (name: "input_tokens" | "output_tokens") =>
      answers.reduce((total, { usage_metadata }) => total + usage_metadata![name], 0);
    return {
      text: answers.at(-1)!.text,
      calls: answers
        .map(({ tool_calls = [] }) => tool_calls.map(({ name, args }) => writeCall(name, args)))
        .filter((calls) => calls.length > 0),
      usage: { input: sum("input_tokens"), output: sum("output_tokens") },
      thoughts: answers.map(({ additional_kwargs }) => additional_kwargs.reasoning_content ?? "").join(""),
    };
  },
  async ask(place, question, { temperature, signal }) {
    return (await open(place, { temperature }).invoke(question, { signal })).text;
  },
  async look(place, image, question) {
    const content = [
      { type: "image_url", image_url: { url: toAddress(image) } },
      { type: "text", text: question },
    ];
    return (await open(place).invoke([{ role: "user", content }])).text;
  },
  readFailure: (error) =>
    ContextOverflowError.isInstance(error)
      ? { kind: "too long", status: undefined, message: error.message }
      : readOpenAiFailure(error),
  async json(place) {
    const schema = z.object({ city: z.string(), degrees: z.number() });
    return open(place).withStructuredOutput(schema, { method: "jsonSchema" }).invoke("The weather, please.");
  },
  async logprobs(place, stream) {
    const model = open(place, { logprobs: true });
    const read = (metadata: Record<string, unknown>) =>
      ((metadata.logprobs as { content: { logprob: number }[] } | null)?.content ?? []).map(({ logprob }) => logprob);
    if (!stream) return read((await model.invoke("Hello.")).response_metadata);
    const all: number[] = [];
    for await (const chunk of await model.stream("Hello.")) all.push(...read(chunk.response_metadata));
    return all;
  },
  async continued(place) {
    const tools = makeTools(weather);
    const model = new ChatOpenAI({
      model: place.model,
      apiKey: place.apiKey,
      configuration: { baseURL: `${place.url}/v1` },
      useResponsesApi: true,
    }).bindTools(tools);
    const first = await model.invoke(weather.question);
    const answers = await Promise.all(
      first.tool_calls!.map(async (call) => {
        const named = tools.find(({ name }) => name === call.name)!;
        return named.invoke({ ...call, type: "tool_call" });
      }),
    );
    const second = await model.invoke(answers as never, { previous_response_id: first.response_metadata.id as string });
    return second.tool_calls!.map(({ name, args }) => writeCall(name, args));
  },
  lacks: {
    counting: "This API counts no tokens beforehand.",
    models: "This client lists no models.",
  },
};
