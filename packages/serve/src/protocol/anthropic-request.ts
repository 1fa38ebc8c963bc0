import type { ChatMessage, ImagePart, ToolCall } from "@cria/core";
import { joinContent } from "@cria/core/internal";
import { z } from "zod";
import { refuseField } from "../request-error.js";
import type { ChatCall } from "./protocol.js";
import { type GivenImage, readContent, readContentPart } from "./read-content.js";
import { getOwn, readFields, showValue } from "./read-fields.js";
import { readPart, readText } from "./read-text.js";
import {
  criaField,
  finishMessages,
  readFormat,
  readFunction,
  readPlayedRole,
  readSampling,
  readStop,
  readToolChoice,
  readTopLogprobs,
  samplingFields,
  topLogprobsField,
} from "./shared-fields.js";

const bodySchema = z.object({
  system: z.unknown().optional(),
  messages: z
    .array(z.object({ role: z.enum(["user", "assistant", "system"]), content: z.unknown().optional() }))
    .min(1),
  tools: z.array(z.looseObject({ type: z.string().nullish() })).nullish(),
  tool_choice: z.unknown().optional(),
  max_tokens: z.number().int().min(1).nullish(),
  stop_sequences: z.array(z.string()).max(64).nullish(),
  stream: z.boolean().nullish(),
  thinking: z.looseObject({ type: z.string().nullish() }).nullish(),
  output_format: z.unknown().optional(),
  output_config: z.looseObject({ format: z.unknown().optional() }).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: topLogprobsField,
  return_token_ids: z.boolean().nullish(),
  cria: criaField,
  ...samplingFields,
});

export interface AnthropicCall extends ChatCall {
  /** True if the client asked for the model's thoughts. */
  thinking: boolean;
}

/** Key of a call's input for arguments that are no JSON object: it holds their text, in requests and answers. */
export const RAW_INPUT = "_raw";

/**
 * A body of `POST /v1/messages` or `/v1/messages/count_tokens`. Server tools are ignored: only the client's tools
 * count.
 */
export function readMessagesBody(body: unknown): AnthropicCall {
  const given = readFields(bodySchema, body);
  const tools = (given.tools ?? []).flatMap((tool, i) =>
    tool.type == null || tool.type === "custom"
      ? readFunction({ ...tool, parameters: getOwn(tool, "input_schema") }, `tools.${i}`)
      : [],
  );
  const system = readText(given.system, "system", "\n\n");
  const messages: ChatMessage[] = system === "" ? [] : [{ role: "system", content: system }];
  const images: GivenImage[] = [];
  given.messages.forEach((message, i) => {
    messages.push(...readMessage(message.role, message.content, `messages.${i}.content`, images));
  });
  const format = given.output_config?.format === undefined ? "output_format" : "output_config.format";
  return {
    request: {
      messages: finishMessages(messages, "messages"),
      tools,
      toolChoice: readToolChoice(given.tool_choice, tools),
      responseFormat: readFormat(given.output_config?.format ?? given.output_format, format),
      maxTokens: given.max_tokens ?? undefined,
      stop: readStop(given.stop_sequences),
      sampling: readSampling(given),
      topLogprobs: readTopLogprobs(given.top_logprobs, given.logprobs === true),
      role: readPlayedRole(given.cria),
    },
    n: 1,
    stream: given.stream === true,
    thinking: given.thinking?.type === "enabled" || given.thinking?.type === "adaptive",
    wishes: { ids: given.return_token_ids === true, logprobs: given.logprobs === true },
    images,
  };
}

/** A message's blocks as chat messages: each tool result becomes a separate message, in order. */
function readMessage(
  role: "user" | "assistant" | "system",
  content: unknown,
  field: string,
  images: GivenImage[],
): ChatMessage[] {
  if (!Array.isArray(content)) {
    if (typeof content !== "string") throw refuseField(field, "a text, or a list of blocks", showValue(content));
    return [{ role, content }];
  }
  if (role === "assistant") return [readAssistant(content, field)];
  const messages: ChatMessage[] = [];
  let parts: (string | ImagePart)[] = [];
  const flush = () => {
    if (parts.length > 0) messages.push({ role, content: joinContent(parts, "\n") });
    parts = [];
  };
  for (const [i, block] of content.entries()) {
    if (getOwn(block, "type") !== "tool_result") {
      parts.push(role === "user" ? readContentPart(block, `${field}.${i}`, images) : readPart(block, `${field}.${i}`));
      continue;
    }
    flush();
    const id = getOwn(block, "tool_use_id");
    if (typeof id !== "string")
      throw refuseField(`${field}.${i}.tool_use_id`, "the id of a tool_use block", showValue(id));
    messages.push({
      role: "tool",
      content: readContent(getOwn(block, "content"), `${field}.${i}.content`, "\n", images),
      tool_call_id: id,
    });
  }
  flush();
  return messages;
}

function readAssistant(blocks: readonly unknown[], field: string): ChatMessage {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: ToolCall[] = [];
  blocks.forEach((block, i) => {
    const type = getOwn(block, "type");
    if (type === "tool_use") calls.push(readCall(block, `${field}.${i}`));
    else if (type === "thinking") thoughts.push(String(getOwn(block, "thinking") ?? ""));
    // Encrypted thoughts are left out.
    else if (type !== "redacted_thinking") texts.push(readPart(block, `${field}.${i}`));
  });
  return {
    role: "assistant",
    content: texts.join(""),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.join("") } : {}),
  };
}

function readCall(block: unknown, field: string): ToolCall {
  const [id, name, input] = ["id", "name", "input"].map((key) => getOwn(block, key));
  if (typeof id !== "string") throw refuseField(`${field}.id`, "a text", showValue(id));
  if (typeof name !== "string") throw refuseField(`${field}.name`, "the name of a tool", showValue(name));
  if (typeof input !== "object" || input === null || Array.isArray(input))
    throw refuseField(`${field}.input`, "a mapping", showValue(input));
  const raw = Object.keys(input).length === 1 ? getOwn(input, RAW_INPUT) : undefined;
  return {
    id,
    type: "function",
    function: { name, arguments: typeof raw === "string" ? raw : JSON.stringify(input) },
  };
}
