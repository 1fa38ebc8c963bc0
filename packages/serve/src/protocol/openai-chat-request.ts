import type { ChatMessage, ToolCall } from "@cria/core";
import { z } from "zod";
import { refuseField } from "../request-error.js";
import type { ChatCall } from "./protocol.js";
import { type GivenImage, readContent } from "./read-content.js";
import { readFields } from "./read-fields.js";
import { readText } from "./read-text.js";
import {
  criaField,
  finishMessages,
  MOST_CHOICES,
  readFormat,
  readFunction,
  readPlayedRole,
  readSampling,
  readStop,
  readToolChoice,
  readTopLogprobs,
  samplingFields,
  stopField,
  topLogprobsField,
} from "./shared-fields.js";

const callSchema = z.object({
  id: z.string().nullish(),
  type: z.string().nullish(),
  function: z.object({
    name: z.string(),
    arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
  }),
});

const messageSchema = z.object({
  role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
  content: z.unknown().optional(),
  name: z.string().nullish(),
  tool_calls: z.array(callSchema).nullish(),
  tool_call_id: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  /** Alias of `reasoning_content` in some clients. */
  reasoning: z.unknown().optional(),
});

const bodySchema = z.object({
  messages: z.array(messageSchema).min(1),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.unknown().optional(),
  response_format: z.unknown().optional(),
  max_tokens: z.number().int().min(1).nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  stop: stopField,
  n: z.number().int().min(1).max(MOST_CHOICES).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: topLogprobsField,
  return_token_ids: z.boolean().nullish(),
  cria: criaField,
  ...samplingFields,
});

export interface OpenAiChatCall extends ChatCall {
  /** True if the stream's last piece has the usage. */
  includeUsage: boolean;
}

/** A body of `POST /v1/chat/completions`. Unknown fields are ignored, and so are tools that are no functions. */
export function readChatBody(body: unknown): OpenAiChatCall {
  const given = readFields(bodySchema, body);
  const tools = (given.tools ?? []).flatMap((tool, i) =>
    tool.type === "function" ? readFunction(tool.function, `tools.${i}.function`) : [],
  );
  const sampling = readSampling(given);
  const images: GivenImage[] = [];
  return {
    request: {
      messages: finishMessages(
        given.messages.map((message, i) => readMessage(message, `messages.${i}.content`, images)),
        "messages",
      ),
      tools,
      toolChoice: readToolChoice(given.tool_choice, tools),
      responseFormat: readFormat(given.response_format, "response_format"),
      maxTokens: given.max_completion_tokens ?? given.max_tokens ?? undefined,
      stop: readStop(given.stop),
      sampling,
      topLogprobs: readTopLogprobs(given.top_logprobs, given.logprobs === true),
      role: readPlayedRole(given.cria),
    },
    n: given.n ?? 1,
    stream: given.stream === true,
    includeUsage: given.stream_options?.include_usage === true,
    wishes: { ids: given.return_token_ids === true, logprobs: given.logprobs === true },
    images,
  };
}

function readMessage(given: z.infer<typeof messageSchema>, field: string, images: GivenImage[]): ChatMessage {
  const role = given.role === "developer" ? "system" : given.role === "function" ? "tool" : given.role;
  const calls = role === "assistant" ? (given.tool_calls ?? []) : [];
  if (role !== "assistant" && (given.content === null || given.content === undefined))
    throw refuseField(field, "a text, or a list of texts and images", "nothing");
  const content =
    role === "user" || role === "tool"
      ? readContent(given.content, field, "\n", images)
      : readText(given.content, field, role === "assistant" ? "" : "\n");
  const reasoning = given.reasoning_content ?? (typeof given.reasoning === "string" ? given.reasoning : undefined);
  return {
    role,
    content,
    ...(given.name ? { name: given.name } : {}),
    ...(calls.length > 0 ? { tool_calls: calls.map(readCall) } : {}),
    ...(role === "tool" && given.tool_call_id ? { tool_call_id: given.tool_call_id } : {}),
    ...(role === "assistant" && reasoning ? { reasoning_content: reasoning } : {}),
  };
}

function readCall({ id, function: called }: z.infer<typeof callSchema>): ToolCall {
  return {
    ...(id ? { id } : {}),
    type: "function",
    function: { name: called.name, arguments: called.arguments ?? "{}" },
  };
}
