import type { ImageSource } from "./images/image-source.js";

/** One call in an assistant message, in the OpenAI format; `arguments` is already parsed. */
export interface ToolCall {
  id?: string;
  type?: "function";
  function: { name: string; arguments: Record<string, unknown> | string };
}

export type Role = "system" | "user" | "assistant" | "tool";

export interface TextPart {
  type: "text";
  text: string;
}

export interface ImagePart {
  type: "image";
  image: ImageSource;
}

/** A part of a message's content. */
export type ContentPart = TextPart | ImagePart;

/** A chat message for templates and datasets. */
export interface ChatMessage {
  role: Role;
  /** Text, or texts and images in order. */
  content: string | ContentPart[];
  name?: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  reasoning_content?: string;
}

/** JSON Schema of a function's parameters; not typed further, since templates print it unchanged. */
export type JsonSchema = Record<string, unknown>;

/** A tool in the OpenAI function format. */
export interface ToolSchema {
  type: "function";
  function: { name: string; description?: string; parameters: JsonSchema };
}
