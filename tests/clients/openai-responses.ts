import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import type { Client } from "./client.js";
import { readOpenAiFailure } from "./openai-failure.js";
import { type Place, type Topic, toAddress, weather, writeCall } from "./topic.js";

type Response = OpenAI.Responses.Response;
type Body = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "stream">;

const open = ({ url, apiKey }: Place) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const listTools = ({ tools }: Topic) =>
  Object.entries(tools).map(([name, tool]) => ({ type: "function" as const, name, strict: false, ...tool }));

/** The answer as the client assembles it; the events of the stream must agree with it. */
async function create({ responses }: OpenAI, body: Body, stream: boolean): Promise<Response> {
  if (!stream) return responses.create(body);
  const events = responses.stream(body);
  let text = "";
  const given: string[] = [];
  for await (const event of events) {
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.function_call_arguments.done") given.push(event.arguments);
  }
  const response = await events.finalResponse();
  const called = response.output.flatMap((item) => (item.type === "function_call" ? item.arguments : []));
  if (text !== response.output_text || given.join() !== called.join())
    throw new Error("the events of a stream say something else than its end");
  return response;
}

export const openaiResponses: Client = {
  name: "`openai`, responses",
  async talk(place, topic, stream) {
    const tools = listTools(topic);
    const instructions = topic.system;
    const client = open(place);
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: topic.question }];
    const calls: string[][] = [];
    const usage = { input: 0, output: 0 };
    let thoughts = "";
    for (;;) {
      const answer = await create(client, { model: place.model, input, instructions, tools, store: false }, stream);
      usage.input += answer.usage!.input_tokens;
      usage.output += answer.usage!.output_tokens;
      for (const item of answer.output)
        if (item.type === "reasoning") thoughts += item.content!.map(({ text }) => text).join("");
      input.push(...(answer.output as OpenAI.Responses.ResponseInputItem[]));
      const called = answer.output.flatMap((item) =>
        item.type === "function_call" ? { id: item.call_id, name: item.name, input: JSON.parse(item.arguments) } : [],
      );
      if (called.length === 0) return { text: answer.output_text, calls, usage, thoughts };
      calls.push(called.map((call) => writeCall(call.name, call.input)));
      for (const call of called)
        input.push({ type: "function_call_output", call_id: call.id, output: topic.call(call.name, call.input) });
    }
  },
  async ask(place, question, { temperature, signal }) {
    const answer = await open(place).responses.create({ model: place.model, input: question, temperature }, { signal });
    return answer.output_text;
  },
  async look(place, image, question) {
    const content = [
      { type: "input_image" as const, image_url: toAddress(image), detail: "auto" as const },
      { type: "input_text" as const, text: question },
    ];
    const answer = await open(place).responses.create({ model: place.model, input: [{ role: "user", content }] });
    return answer.output_text;
  },
  readFailure: readOpenAiFailure,
  async json(place) {
    const answer = await open(place).responses.parse({
      model: place.model,
      input: "The weather, please.",
      text: { format: zodTextFormat(z.object({ city: z.string(), degrees: z.number() }), "weather") },
    });
    return answer.output_parsed;
  },
  async logprobs(place, stream) {
    const body: Body = { model: place.model, input: "Hello.", include: ["message.output_text.logprobs"] };
    const { output } = await create(open(place), body, stream);
    return output.flatMap((item) =>
      item.type !== "message"
        ? []
        : item.content.flatMap((part) =>
            part.type === "output_text" ? part.logprobs!.map(({ logprob }) => logprob) : [],
          ),
    );
  },
  async continued(place) {
    const { responses } = open(place);
    const tools = listTools(weather);
    const first = await responses.create({ model: place.model, input: weather.question, tools });
    const outputs = first.output.flatMap((item) =>
      item.type === "function_call"
        ? {
            type: "function_call_output" as const,
            call_id: item.call_id,
            output: weather.call(item.name, JSON.parse(item.arguments)),
          }
        : [],
    );
    const second = await responses.create({
      model: place.model,
      previous_response_id: first.id,
      input: outputs,
      tools,
    });
    return second.output.flatMap((item) =>
      item.type === "function_call" ? writeCall(item.name, JSON.parse(item.arguments)) : [],
    );
  },
  async models(place) {
    const { id } = await open(place).models.retrieve(place.model);
    return [id];
  },
  lacks: { counting: "This API counts no tokens beforehand." },
};
