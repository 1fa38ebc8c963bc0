import type { ChatMessage, Role } from "@cria/core";
import { cutAtMarks } from "./image-marks.js";

/** A template's form of an assistant message's tool calls. */
export interface CallForm {
  arguments: "object" | "json";
  /** Value of `content` in a message with calls and no text. */
  noContent: "" | null;
}

/** The usual form first: most templates print arguments as JSON themselves. */
export const callForms: readonly CallForm[] = [
  { arguments: "object", noContent: "" },
  { arguments: "json", noContent: "" },
  { arguments: "object", noContent: null },
  { arguments: "json", noContent: null },
];

/**
 * A template's form of contents: a text with the marks of images in it, or a list of parts, in which an image is a
 * separate part or a text part with its mark.
 */
export type ContentForm = "text" | "image parts" | "text parts";

export interface MessageForm {
  calls: CallForm;
  contentOf: (role: Role) => ContentForm;
}

/**
 * Adds ids to calls and their answers without them: some templates require them (Mistral's with nine characters), or
 * find a call's name by them. An answer belongs to the call at the same index in its turn, so the ids are the same when
 * only the end of a conversation is rendered.
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

/** A message in a template's form; its content is a text with the marks of its images. */
export function toTemplateMessage(message: ChatMessage, form: MessageForm, source: string): Record<string, unknown> {
  const contentForm = form.contentOf(message.role);
  const result: Record<string, unknown> = { ...message, content: toTemplateContent(message.content, contentForm) };
  // gpt-oss and related models use another name for the field.
  if (message.reasoning_content !== undefined && /message\.thinking\b/.test(source))
    result["thinking"] = message.reasoning_content;
  if (!message.tool_calls || message.tool_calls.length === 0) {
    delete result["tool_calls"];
    return result;
  }
  if (message.content === "") result["content"] = toTemplateContent(form.calls.noContent, contentForm);
  result["tool_calls"] = message.tool_calls.map((call) => ({
    type: "function",
    ...call,
    function: { ...call.function, arguments: convertArguments(call.function.arguments, form.calls) },
  }));
  return result;
}

/** Values other than texts stay: a template may need them. */
function toTemplateContent(content: unknown, form: ContentForm): unknown {
  if (form === "text" || typeof content !== "string") return content;
  if (content === "") return [{ type: "text", text: "" }];
  return cutAtMarks(content).map(({ text, hash }) =>
    hash !== null && form === "image parts" ? { type: "image" } : { type: "text", text },
  );
}

function convertArguments(value: Record<string, unknown> | string, form: CallForm): unknown {
  if (form.arguments === "json") return typeof value === "string" ? value : JSON.stringify(value);
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
