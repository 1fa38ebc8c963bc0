import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import type { Client } from "./client.js";
import { readOpenAiFailure } from "./openai-failure.js";
import { type Place, type Topic, toAddress, writeCall } from "./topic.js";

type Message = OpenAI.ChatCompletionMessageParam;

const open = ({ url, apiKey }: Place) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const listTools = ({ tools }: Topic) =>
  Object.entries(tools).map(([name, tool]) => ({ type: "function" as const, function: { name, ...tool } }));

export const openaiChat: Client = {
  name: "`openai`, chat completions",
  async talk(place, topic, stream) {
    const tools = listTools(topic);
    const client = open(place);
    const messages: Message[] = [
      { role: "system", content: topic.system },
      { role: "user", content: topic.question },
    ];
    const calls: string[][] = [];
    const usage = { input: 0, output: 0 };
    let thoughts = "";
    for (;;) {
      const body = { model: place.model, messages, tools };
      const answer = stream
        ? await client.chat.completions
            .stream({ ...body, stream_options: { include_usage: true } })
            .finalChatCompletion()
        : await client.chat.completions.create(body);
      const { message } = answer.choices[0]!;
      usage.input += answer.usage!.prompt_tokens;
      usage.output += answer.usage!.completion_tokens;
      thoughts += (message as { reasoning_content?: string }).reasoning_content ?? "";
      messages.push(message);
      if (!message.tool_calls?.length) return { text: message.content!, calls, usage, thoughts };
      const called = message.tool_calls.flatMap((call) =>
        call.type === "function"
          ? { id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) }
          : [],
      );
      calls.push(called.map(({ name, input }) => writeCall(name, input)));
      for (const { id, name, input } of called)
        messages.push({ role: "tool", tool_call_id: id, content: topic.call(name, input) });
    }
  },
  async ask(place, question, { temperature, signal }) {
    const body = { model: place.model, messages: [{ role: "user" as const, content: question }], temperature };
    const answer = await open(place).chat.completions.create(body, { signal });
    return answer.choices[0]!.message.content!;
  },
  async look(place, image, question) {
    const content = [
      { type: "image_url" as const, image_url: { url: toAddress(image) } },
      { type: "text" as const, text: question },
    ];
    const messages = [{ role: "user" as const, content }];
    const answer = await open(place).chat.completions.create({ model: place.model, messages });
    return answer.choices[0]!.message.content!;
  },
  readFailure: readOpenAiFailure,
  async json(place) {
    const answer = await open(place).chat.completions.parse({
      model: place.model,
      messages: [{ role: "user", content: "The weather, please." }],
      response_format: zodResponseFormat(z.object({ city: z.string(), degrees: z.number() }), "weather"),
    });
    return answer.choices[0]!.message.parsed;
  },
  async logprobs(place, stream) {
    const body = { model: place.model, messages: [{ role: "user" as const, content: "Hello." }], logprobs: true };
    const { chat } = open(place);
    const answer = stream
      ? await chat.completions.stream(body).finalChatCompletion()
      : await chat.completions.create(body);
    return answer.choices[0]!.logprobs!.content!.map(({ logprob }) => logprob);
  },
  async models(place) {
    return (await open(place).models.list()).data.map(({ id }) => id);
  },
  lacks: {
    continued: "This API sends the whole conversation each time.",
    counting: "This API counts no tokens beforehand.",
  },
};
