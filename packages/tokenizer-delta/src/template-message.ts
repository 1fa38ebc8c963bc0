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

/**
 * Gives calls and their answers ids where they have none: some templates insist on them (Mistral's on nine characters),
 * or find a call's name by them. An answer belongs to the call at the same place of its turn, so the ids are the same
 * whether a whole conversation is rendered or its end alone.
 */
export function pairCallsWithAnswers(messages: readonly ChatMessage[]): ChatMessage[] {
  let ids: string[] = [];
  let answered = 0;
  return messages.map((message) => {
    if (message.role !== "tool") {
      ids = (message.tool_calls ?? []).map((call, i) => call.id ?? makeId(i));
      answered = 0;
      return message.tool_calls
        ? { ...message, tool_calls: message.tool_calls.map((call, i) => ({ ...call, id: ids[i]! })) }
        : message;
    }
    const place = answered++;
    return message.tool_call_id === undefined ? { ...message, tool_call_id: ids[place] ?? makeId(place) } : message;
  });
}

function makeId(place: number): string {
  return `call${String(place + 1).padStart(5, "0")}`;
}

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
