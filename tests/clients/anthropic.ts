import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import type { Client, Failure } from "./client.js";
import { type Place, type Topic, writeCall } from "./topic.js";

const MAX_TOKENS = 300;

const open = ({ url, apiKey }: Place) => new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
const listTools = ({ tools }: Topic) =>
  Object.entries(tools).map(([name, { description, parameters }]) => ({ name, description, input_schema: parameters }));

export const anthropic: Client = {
  name: "`@anthropic-ai/sdk`",
  async talk(place, topic, stream) {
    const { system } = topic;
    const tools = listTools(topic);
    const client = open(place);
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: topic.question }];
    const calls: string[][] = [];
    const usage = { input: 0, output: 0 };
    let thoughts = "";
    for (;;) {
      const thinking = { type: "enabled" as const, budget_tokens: 1024 };
      const body = { model: place.model, max_tokens: MAX_TOKENS, system, messages, tools, thinking };
      const answer = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
      usage.input += answer.usage.input_tokens + answer.usage.cache_read_input_tokens!;
      usage.output += answer.usage.output_tokens;
      for (const block of answer.content) if (block.type === "thinking") thoughts += block.thinking;
      messages.push({ role: "assistant", content: answer.content });
      const used = answer.content.flatMap((block) => (block.type === "tool_use" ? block : []));
      if (used.length === 0) {
        const text = answer.content.map((block) => (block.type === "text" ? block.text : "")).join("");
        return { text, calls, usage, thoughts };
      }
      calls.push(used.map(({ name, input }) => writeCall(name, input)));
      const content = used.map(({ id, name, input }) => ({
        type: "tool_result" as const,
        tool_use_id: id,
        content: topic.call(name, input),
      }));
      messages.push({ role: "user", content });
    }
  },
  async ask(place, question, { temperature, signal }) {
    const messages = [{ role: "user" as const, content: question }];
    const body = { model: place.model, max_tokens: MAX_TOKENS, messages, temperature };
    const answer = await open(place).messages.create(body, { signal });
    return answer.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  },
  async look(place, image, question) {
    const data = Buffer.from(image).toString("base64");
    const content = [
      { type: "image" as const, source: { type: "base64" as const, media_type: "image/png" as const, data } },
      { type: "text" as const, text: question },
    ];
    const messages = [{ role: "user" as const, content }];
    const answer = await open(place).messages.create({ model: place.model, max_tokens: MAX_TOKENS, messages });
    return answer.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  },
  readFailure(error) {
    const { status, message } = error as Failure;
    if (error instanceof Anthropic.AuthenticationError) return { kind: "wrong key", status, message };
    if (!(error instanceof Anthropic.BadRequestError)) return { kind: "other", status, message };
    return { kind: message.includes("prompt is too long") ? "too long" : "wrong request", status, message };
  },
  async json(place) {
    const schema = z.object({ city: z.string(), degrees: z.number() });
    const answer = await open(place).messages.parse({
      model: place.model,
      max_tokens: MAX_TOKENS,
      messages: [{ role: "user", content: "The weather, please." }],
      output_config: { format: zodOutputFormat(schema) },
    });
    return answer.parsed_output;
  },
  async counting(place, question) {
    const messages = [{ role: "user" as const, content: question }];
    return (await open(place).messages.countTokens({ model: place.model, messages })).input_tokens;
  },
  async models(place) {
    return (await open(place).models.list()).data.map(({ id }) => id);
  },
  lacks: {
    logprobs: "This client does not read logprobs.",
    continued: "This API sends the whole conversation each time.",
  },
};
