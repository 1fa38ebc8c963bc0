import { type ChatMessage, DataError, joinContent, type Role, type ToolCall, toContentPart } from "@cria/core";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { sortToolAnswers } from "../sort-tool-answers.js";

/**
 * LangChain's messages as chat messages; answers of tools in the order of their calls.
 * @throws DataError "chat/bad-request" for parts that are neither text nor image, or a role that no template has.
 */
export function readMessages(messages: readonly BaseMessage[]): ChatMessage[] {
  return sortToolAnswers(messages.map(readMessage));
}

const roles: Record<string, Role> = {
  human: "user",
  user: "user",
  ai: "assistant",
  assistant: "assistant",
  system: "system",
  developer: "system",
  tool: "tool",
};

function readMessage(message: BaseMessage): ChatMessage {
  const type = "role" in message ? String(message.role) : message.type;
  const role = Object.hasOwn(roles, type) ? roles[type]! : refuse("type", "human, ai, system or tool", type);
  if (AIMessage.isInstance(message)) return readAnswer(message);
  const content = readContent(message, role);
  if (!ToolMessage.isInstance(message)) return { role, content };
  const { name, tool_call_id } = message;
  return { role, content, tool_call_id, ...(name === undefined ? {} : { name }) };
}

function readAnswer(message: AIMessage): ChatMessage {
  const calls = readCalls(message);
  const thoughts = message.additional_kwargs.reasoning_content;
  return {
    role: "assistant",
    // Blocks of an answer that are no text say elsewhere what they are.
    content: message.text,
    ...(typeof thoughts === "string" ? { reasoning_content: thoughts } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

/** LangChain keeps calls that cannot be read apart; here they are in the order in which the model wrote them. */
function readCalls({ tool_calls = [], invalid_tool_calls = [], response_metadata }: AIMessage): ToolCall[] {
  const calls = [
    ...tool_calls.map(({ id, name, args }) => ({ id, name, text: JSON.stringify(args) })),
    ...invalid_tool_calls.map(({ id, name = "", args = "" }) => ({ id, name, text: args })),
  ];
  const order = (response_metadata?.cria as { toolCallIds?: unknown } | undefined)?.toolCallIds;
  const place = (id: string | undefined) => (Array.isArray(order) ? order.indexOf(id) : 0);
  return calls
    .sort((a, b) => place(a.id) - place(b.id))
    .map(({ id, name, text }) => ({ id, type: "function", function: { name, arguments: text } }));
}

function readContent({ content }: BaseMessage, role: Role): ChatMessage["content"] {
  if (typeof content === "string") return content;
  const parts = content.map((block) => {
    const part = toContentPart(block);
    if (part?.type === "text") return part.text;
    if (part && role !== "system") return part;
    // What a tool shows beside texts and images is named, as the model cannot see it.
    return role === "tool" ? `[${block.type}]` : refuse("content", "text, or an image of a user or a tool", block.type);
  });
  return joinContent(parts, "\n");
}

function refuse(subject: string, expected: string, received: string): never {
  throw new DataError("cannot be given to the model", {
    code: "chat/bad-request",
    subject: `message: ${subject}`,
    expected,
    received,
  });
}
