import type { ChatMessage } from "@cria/core";

/** How a template wants the tool calls of an assistant message. */
export interface MessageForm {
  arguments: "object" | "json";
  /** What `content` is when a message makes calls and says nothing. */
  noContent: "" | null;
}

/** The usual form first: most templates print arguments as JSON themselves. */
export const callForms: readonly MessageForm[] = [
  { arguments: "object", noContent: "" },
  { arguments: "json", noContent: "" },
  { arguments: "object", noContent: null },
  { arguments: "json", noContent: null },
];

/** A message as a template reads it. */
export function toTemplateMessage(message: ChatMessage, form: MessageForm, source: string): Record<string, unknown> {
  const result: Record<string, unknown> = { ...message };
  // gpt-oss and its relatives call the field by another name.
  if (message.reasoning_content !== undefined && /message\.thinking\b/.test(source))
    result["thinking"] = message.reasoning_content;
  if (!message.tool_calls || message.tool_calls.length === 0) {
    delete result["tool_calls"];
    return result;
  }
  if (message.content === "") result["content"] = form.noContent;
  result["tool_calls"] = message.tool_calls.map((call) => ({
    type: "function",
    ...call,
    function: { ...call.function, arguments: convertArguments(call.function.arguments, form) },
  }));
  return result;
}

function convertArguments(value: Record<string, unknown> | string, form: MessageForm): unknown {
  if (form.arguments === "json") return typeof value === "string" ? value : JSON.stringify(value);
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
