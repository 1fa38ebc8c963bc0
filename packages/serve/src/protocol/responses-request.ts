import type { ChatMessage, ToolCall } from "@cria/core";
import { z } from "zod";
import { refuseField } from "../request-error.js";
import type { ChatCall } from "./protocol.js";
import { type GivenImage, readContent } from "./read-content.js";
import { getOwn, readFields, showValue } from "./read-fields.js";
import { readText } from "./read-text.js";
import {
  criaField,
  finishMessages,
  readFormat,
  readFunction,
  readPlayedRole,
  readSampling,
  readToolChoice,
  readTopLogprobs,
  samplingFields,
  topLogprobsField,
} from "./shared-fields.js";

const itemSchema = z.looseObject({ type: z.string().nullish() });
const bodySchema = z.object({
  input: z.union([z.string(), z.array(itemSchema)]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.unknown().optional(),
  text: z.looseObject({ format: z.unknown().optional() }).nullish(),
  max_output_tokens: z.number().int().min(1).nullish(),
  background: z.boolean().nullish(),
  conversation: z.unknown().optional(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  include: z.array(z.string()).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  return_token_ids: z.boolean().nullish(),
  cria: criaField,
  logprobs: z.boolean().nullish(),
  top_logprobs: topLogprobsField,
  ...samplingFields,
});

/** Fields of the request that the answer repeats. */
export interface ResponsesEcho {
  instructions: string | null;
  max_output_tokens: number | null;
  metadata: object;
  previous_response_id: string | null;
  temperature: number | null;
  top_p: number | null;
  top_logprobs: number;
  tools: object[];
  tool_choice: unknown;
  text: object;
  store: boolean;
}

export interface ResponsesCall extends ChatCall {
  /** The conversation without instructions, which hold only for this call: a next call continues it. */
  history: ChatMessage[];
  echo: ResponsesEcho;
}

/** Finds the responses and items that `previous_response_id` and item references name. */
export interface ResponsesLookUp {
  /** The conversation up to a response, with the response's message; undefined when it is unknown. */
  findHistory(id: string): readonly ChatMessage[] | undefined;
  /** An item of an earlier response. */
  findItem(id: string): object | undefined;
}

/**
 * A body of `POST /v1/responses`. Tools that are no functions are ignored.
 * @throws RequestError 400, also for a response or an item that is unknown or forgotten.
 */
export function readResponsesBody(body: unknown, lookUp: ResponsesLookUp): ResponsesCall {
  const given = readFields(bodySchema, body);
  if (given.background) throw refuseField("background", "false: answers are not made in the background", "true");
  if (given.conversation != null)
    throw refuseField("conversation", "none: continue with previous_response_id", showValue(given.conversation));
  const tools = (given.tools ?? []).flatMap((tool, i) =>
    tool.type === "function" ? readFunction(getOwn(tool, "function") ?? tool, `tools.${i}`) : [],
  );
  const previous = given.previous_response_id ?? null;
  const before = previous === null ? [] : lookUp.findHistory(previous);
  if (!before)
    throw refuseField(
      "previous_response_id",
      "the id of a response of this session that is still known",
      showValue(previous),
      "send the whole conversation as input",
    );
  const images: GivenImage[] = [];
  const history = [...before, ...readInput(given.input, lookUp, images)];
  const logprobs = given.logprobs === true || (given.include ?? []).includes("message.output_text.logprobs");
  const system: ChatMessage[] = given.instructions ? [{ role: "system", content: given.instructions }] : [];
  return {
    request: {
      messages: finishMessages([...system, ...history], "input"),
      tools,
      toolChoice: readToolChoice(given.tool_choice, tools),
      responseFormat: readFormat(given.text?.format, "text.format"),
      maxTokens: given.max_output_tokens ?? undefined,
      sampling: readSampling(given),
      topLogprobs: readTopLogprobs(given.top_logprobs, logprobs),
      role: readPlayedRole(given.cria),
    },
    history,
    n: 1,
    stream: given.stream === true,
    wishes: { ids: given.return_token_ids === true, logprobs },
    images,
    echo: {
      instructions: given.instructions ?? null,
      max_output_tokens: given.max_output_tokens ?? null,
      metadata: given.metadata ?? {},
      previous_response_id: previous,
      temperature: given.temperature ?? null,
      top_p: given.top_p ?? null,
      top_logprobs: given.top_logprobs ?? 0,
      tools: given.tools ?? [],
      tool_choice: given.tool_choice ?? "auto",
      text: given.text ?? { format: { type: "text" } },
      store: given.store !== false,
    },
  };
}

function readInput(
  input: string | z.infer<typeof itemSchema>[],
  lookUp: ResponsesLookUp,
  images: GivenImage[],
): ChatMessage[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  const messages: ChatMessage[] = [];
  input.forEach((item, i) => {
    addItem(messages, resolveItem(item, `input.${i}`, lookUp), `input.${i}`, images);
  });
  return messages;
}

function resolveItem(item: object, field: string, lookUp: ResponsesLookUp): object {
  if (getOwn(item, "type") !== "item_reference") return item;
  const id = getOwn(item, "id");
  const found = typeof id === "string" ? lookUp.findItem(id) : undefined;
  if (found) return found;
  throw refuseField(
    `${field}.id`,
    "the id of an item of this session that is still known",
    showValue(id),
    "send the item itself",
  );
}

/** Adds an item. The assistant's thoughts, words and calls are separate items, but one message. */
function addItem(messages: ChatMessage[], item: object, field: string, images: GivenImage[]): void {
  const type = getOwn(item, "type") ?? "message";
  const last = messages.at(-1);
  if (type === "message") {
    const role = readRole(getOwn(item, "role"), field);
    const given = getOwn(item, "content");
    const content =
      role === "user"
        ? readContent(given, `${field}.content`, "\n", images)
        : readText(given, `${field}.content`, role === "assistant" ? "" : "\n");
    // The thoughts of this message were the item before.
    if (role === "assistant" && last?.role === "assistant" && last.content === "" && !last.tool_calls)
      last.content = content;
    else messages.push({ role, content });
  } else if (type === "reasoning") {
    const thoughts = readText(getOwn(item, "content") ?? getOwn(item, "summary"), `${field}.content`, "");
    messages.push({ role: "assistant", content: "", reasoning_content: thoughts });
  } else if (type === "function_call") {
    const call = readCall(item, field);
    if (last?.role === "assistant") last.tool_calls = [...(last.tool_calls ?? []), call];
    else messages.push({ role: "assistant", content: "", tool_calls: [call] });
  } else if (type === "function_call_output") {
    const id = getOwn(item, "call_id");
    if (typeof id !== "string") throw refuseField(`${field}.call_id`, "the call_id of a function_call", showValue(id));
    messages.push({
      role: "tool",
      content: readContent(getOwn(item, "output"), `${field}.output`, "\n", images),
      tool_call_id: id,
    });
  } else {
    throw refuseField(
      `${field}.type`,
      "message, reasoning, function_call, function_call_output or item_reference",
      showValue(type),
    );
  }
}

function readRole(role: unknown, field: string): "system" | "user" | "assistant" {
  if (role === "developer") return "system";
  if (role === "system" || role === "user" || role === "assistant") return role;
  throw refuseField(`${field}.role`, "system, developer, user or assistant", showValue(role));
}

function readCall(item: object, field: string): ToolCall {
  const [id, name, given] = ["call_id", "name", "arguments"].map((key) => getOwn(item, key));
  if (typeof id !== "string") throw refuseField(`${field}.call_id`, "a text", showValue(id));
  if (typeof name !== "string") throw refuseField(`${field}.name`, "the name of a function", showValue(name));
  if (typeof given !== "string") throw refuseField(`${field}.arguments`, "JSON text", showValue(given));
  return { id, type: "function", function: { name, arguments: given } };
}
