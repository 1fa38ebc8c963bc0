import type { ImageSource } from "./images/image-source.js";

/** One call that an assistant message makes, in the OpenAI format; `arguments` is already parsed. */
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

/** A stretch of a message's content. */
export type ContentPart = TextPart | ImagePart;

/** A chat message as templates and datasets see it. */
export interface ChatMessage {
  role: Role;
  /** Text, or texts and images in their order. */
  content: string | ContentPart[];
  name?: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  reasoning_content?: string;
}

/** JSON Schema of a function's parameters; kept open, since templates print it as it is. */
export type JsonSchema = Record<string, unknown>;

/** A tool as the OpenAI function format describes it. */
export interface ToolSchema {
  type: "function";
  function: { name: string; description?: string; parameters: JsonSchema };
}
