import { type ChatMessage, contentText, type ToolSchema } from "@cria/core";
import type { ChatSampling, ResponseFormat, ToolChoice } from "@cria/rollout";
import { z } from "zod";
import { refuseField } from "../request-error.js";
import { getOwn, showValue } from "./read-fields.js";

/** Most answers to one request (`n`). */
export const MOST_CHOICES = 64;
/** Most stop strings of a request. */
const MOST_STOPS = 64;

/** Sampling fields of every protocol; null counts as absent. */
export const samplingFields = {
  temperature: z.number().min(0).max(100).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.number().int().min(-1).nullish(),
  min_p: z.number().min(0).lt(1).nullish(),
  seed: z.number().int().nullish(),
};

/** Most candidates for each sampled token. */
const MOST_TOP_LOGPROBS = 20;

export const topLogprobsField = z.number().int().min(0).max(MOST_TOP_LOGPROBS).nullish();

/** @throws RequestError 400 for candidates without logprobs. */
export function readTopLogprobs(top: number | null | undefined, logprobs: boolean): number | undefined {
  if (!top) return undefined;
  if (!logprobs) throw refuseField("top_logprobs", "logprobs to be requested too", "top_logprobs without logprobs");
  return top;
}

/** Cria's own field of a request. `role`: the role that the model plays (`ChatRequest.role`). */
export const criaField = z.object({ role: z.string().nullish() }).nullish();

export function readPlayedRole(cria: z.infer<typeof criaField>): string | undefined {
  return cria?.role ?? undefined;
}

export const stopField = z.union([z.string(), z.array(z.string()).max(MOST_STOPS)]).nullish();

interface SamplingValues {
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  min_p?: number | null;
  seed?: number | null;
}

/** undefined for values that the request leaves to the model. */
export function readSampling({ temperature, top_p, top_k, min_p, seed }: SamplingValues): ChatSampling | undefined {
  const sampling: ChatSampling = {};
  if (temperature != null) sampling.temperature = temperature;
  // Clients write 0 for "only the likeliest token" and -1 for "all tokens".
  if (top_p != null) sampling.topP = top_p === 0 ? Number.MIN_VALUE : top_p;
  if (top_k != null) sampling.topK = Math.max(0, top_k);
  if (min_p != null) sampling.minP = min_p;
  if (seed != null) sampling.seed = seed >>> 0;
  return Object.keys(sampling).length === 0 ? undefined : sampling;
}

export function readStop(stop: string | string[] | null | undefined): string[] | undefined {
  const texts = (typeof stop === "string" ? [stop] : (stop ?? [])).filter((text) => text !== "");
  return texts.length === 0 ? undefined : texts;
}

const functionSchema = z.object({
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
});

/**
 * A function's description in the form that templates print.
 * @throws RequestError 400
 */
export function readFunction(value: unknown, field: string): ToolSchema {
  const result = functionSchema.safeParse(value);
  if (!result.success) {
    const path = result.error.issues[0]!.path.map(String);
    const expected = { name: "a text of at least one character", description: "a text", parameters: "a JSON Schema" };
    const received = path.reduce(getOwn, value);
    throw refuseField(
      [field, ...path].join("."),
      expected[path[0] as keyof typeof expected] ?? "a mapping with name, description and parameters",
      showValue(received),
    );
  }
  const { name, description, parameters } = result.data;
  return {
    type: "function",
    function: { name, ...(description ? { description } : {}), parameters: parameters ?? noParameters },
  };
}

const noParameters = { type: "object", properties: {} };

/**
 * The tools that the model may or must call, in any form that clients write: "auto", "any", { type: "function", name }.
 * @throws RequestError 400 for other values, and for a function that is not among the tools.
 */
export function readToolChoice(
  choice: unknown,
  tools: readonly ToolSchema[],
  field = "tool_choice",
): ToolChoice | undefined {
  if (choice === null || choice === undefined) return undefined;
  const type = typeof choice === "string" ? choice : getOwn(choice, "type");
  if (type === "auto" || type === "none") return type;
  if (type === "required" || type === "any") return requireTools(tools, type, field);
  // For a list of allowed tools, only the mode has an effect.
  if (type === "allowed_tools")
    return readToolChoice(getOwn(getOwn(choice, "allowed_tools") ?? choice, "mode") ?? "auto", tools, `${field}.mode`);
  if (type !== "function" && type !== "tool")
    throw refuseField(field, "auto, none, required, or a function of tools", showValue(choice));
  const name = getOwn(getOwn(choice, "function") ?? choice, "name");
  if (typeof name !== "string") throw refuseField(`${field}.name`, "the name of a tool", showValue(name));
  if (tools.some((tool) => tool.function.name === name)) return { name };
  throw refuseField(`${field}.name`, `one of tools: ${listNames(tools)}`, showValue(name));
}

function requireTools(tools: readonly ToolSchema[], type: string, field: string): ToolChoice {
  if (tools.length > 0) return "required";
  throw refuseField(field, "auto or none where there are no function tools", type);
}

const listNames = (tools: readonly ToolSchema[]) => tools.map((tool) => tool.function.name).join(", ") || "none";

/**
 * The required form of the answer.
 * @param format in the form of chat completions (`json_schema: { schema }`), or flat, as in responses and messages.
 * @throws RequestError 400
 */
export function readFormat(format: unknown, field: string): ResponseFormat | undefined {
  if (format === null || format === undefined) return undefined;
  const type = getOwn(format, "type");
  if (type === "text") return undefined;
  if (type === "json_object") return { type };
  if (type !== "json_schema")
    throw refuseField(`${field}.type`, "text, json_object or json_schema", showValue(type ?? format));
  const nested = getOwn(format, "json_schema");
  const [place, at] = nested === undefined ? [format, field] : [nested, `${field}.json_schema`];
  const schema = getOwn(place, "schema");
  if (typeof schema !== "object" || schema === null || Array.isArray(schema))
    throw refuseField(`${at}.schema`, "a JSON Schema", showValue(schema));
  const name = getOwn(place, "name");
  return { type, schema: schema as Record<string, unknown>, ...(typeof name === "string" ? { name } : {}) };
}

/**
 * The conversation in the form that templates take: system messages at its beginning become one, and tools' answers get
 * the tool's name.
 * @throws RequestError 400 when the assistant is not the next to speak.
 */
export function finishMessages(messages: readonly ChatMessage[], field: string): ChatMessage[] {
  const first = messages.findIndex(({ role }) => role !== "system");
  const systems = messages.slice(0, first < 0 ? messages.length : first);
  const rest = messages.slice(systems.length);
  const last = messages.at(-1);
  if (!last || last.role === "assistant")
    throw refuseField(
      field,
      "a conversation in which the assistant speaks next",
      last ? "a last message of the assistant" : "none",
    );
  const names = new Map<string, string>();
  const named = rest.map((message) => {
    for (const { id, function: called } of message.tool_calls ?? []) if (id !== undefined) names.set(id, called.name);
    const name = message.role === "tool" ? (message.name ?? names.get(message.tool_call_id ?? "")) : undefined;
    return name === undefined ? message : { ...message, name };
  });
  if (systems.length === 0) return named;
  return [{ role: "system", content: systems.map(({ content }) => contentText(content)).join("\n\n") }, ...named];
}
