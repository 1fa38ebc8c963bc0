import { DataError } from "@cria/core";
import { describeData } from "../plain-data.js";
import type { ChatRequest } from "./chat-model.js";

/** Roles are parts of metric names. */
const roleName = /^[\w-]{1,64}$/;

export const aRole = 'a name of 1 to 64 letters, digits, "_" and "-"';

export function isRole(value: unknown): value is string {
  return typeof value === "string" && roleName.test(value);
}

const roles: readonly string[] = ["system", "user", "assistant", "tool"];

/** @throws DataError that names the invalid part of a request. */
export function checkRequest(request: ChatRequest): void {
  if (typeof request !== "object" || request === null)
    throw refuse("request", "{ messages, ... }", describeData(request));
  const { messages, tools = [], toolChoice, maxTokens, sampling = {}, stop = [], role: played } = request;
  if (!Array.isArray(messages) || messages.length === 0)
    throw refuse("messages", "at least one message", describeData(messages));
  messages.forEach((message, i) => {
    const { role, content } = message ?? {};
    if (!roles.includes(role)) throw refuse(`messages[${i}].role`, roles.join(", "), describeData(role));
    checkContent(content, `messages[${i}].content`);
  });
  if (!Array.isArray(tools) || !tools.every((tool) => typeof tool?.function?.name === "string"))
    throw refuse("tools", "a list of { type: function, function: { name, ... } }", describeData(tools));
  if (messages.at(-1)!.role === "assistant")
    throw refuse("messages", "a last message of a user, a tool or the system", "one of the assistant");
  if (typeof toolChoice === "object" && !tools.some((tool) => tool.function.name === toolChoice?.name))
    throw refuse("tool_choice", `one of ${listNames(tools)}`, describeData(toolChoice?.name));
  if (toolChoice === "required" && tools.length === 0) throw refuse("tool_choice", "tools to choose from", "no tools");
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && maxTokens >= 1))
    throw refuse("max_tokens", "a whole number of at least 1", describeData(maxTokens));
  if (played !== undefined && !isRole(played)) throw refuse("role", aRole, describeData(played));
  if (!Array.isArray(stop) || stop.some((text) => typeof text !== "string" || text === ""))
    throw refuse("stop", "texts, none of them empty", describeData(stop));
  if (typeof sampling !== "object" || sampling === null)
    throw refuse("sampling", "{ temperature, topP, ... }", describeData(sampling));
  const ranges = {
    temperature: [(x: number) => x >= 0, "a number of at least 0"],
    topP: [(x: number) => x > 0 && x <= 1, "a number above 0 and at most 1"],
    topK: [(x: number) => Number.isInteger(x) && x >= 0, "a whole number of at least 0"],
    minP: [(x: number) => x >= 0 && x < 1, "a number of at least 0 and below 1"],
    seed: [(x: number) => Number.isInteger(x), "a whole number"],
  } as const;
  for (const [name, [isRight, expected]] of Object.entries(ranges)) {
    const value = sampling[name as keyof typeof ranges];
    if (value !== undefined && !(typeof value === "number" && isRight(value)))
      throw refuse(name, expected, describeData(value));
  }
}

/** Checks the form alone; unreadable images are found when they are loaded. */
function checkContent(content: unknown, place: string): void {
  if (typeof content === "string") return;
  if (!Array.isArray(content)) throw refuse(place, "a text, or a list of texts and images", describeData(content));
  content.forEach((part, i) => {
    const { type, text, image } = (part ?? {}) as { type?: unknown; text?: unknown; image?: unknown };
    const isPart =
      (type === "text" && typeof text === "string") || (type === "image" && typeof image === "object" && image);
    if (!isPart) throw refuse(`${place}[${i}]`, "{ type: text, text } or { type: image, image }", describeData(part));
  });
}

function listNames(tools: NonNullable<ChatRequest["tools"]>): string {
  return tools.map((tool) => tool.function.name).join(", ") || "no tools";
}

function refuse(subject: string, expected: string, received: string): DataError {
  return new DataError("is wrong", { code: "chat/bad-request", subject, expected, received });
}
