import {
  type LanguageModelV3FilePart,
  type LanguageModelV3Message,
  type LanguageModelV3Prompt,
  type LanguageModelV3ToolCallPart,
  type LanguageModelV3ToolResultPart,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import type { ChatMessage, ImagePart, ToolCall } from "@cria/core";
import { joinContent, toContentPart } from "@cria/core/internal";
import { sortToolAnswers } from "./sort-tool-answers.js";

/**
 * The AI SDK's prompt as chat messages. Parts of text become one text; each tool result becomes a message, in the order
 * of the calls. Of files only texts and images can be read; the session decides on an image by its address.
 * @throws UnsupportedFunctionalityError for other files.
 */
export function readPrompt(prompt: LanguageModelV3Prompt): ChatMessage[] {
  return sortToolAnswers(prompt.flatMap(readMessage));
}

function readMessage(message: LanguageModelV3Message): ChatMessage[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user":
      return [{ role: "user", content: joinContent(message.content.map(readUserPart), "\n") }];
    case "assistant":
      return readAssistantMessage(message.content);
    case "tool":
      return message.content.filter((part) => part.type === "tool-result").map(readToolResult);
  }
}

type UserPart = Extract<LanguageModelV3Message, { role: "user" }>["content"][number];
type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];

function readUserPart(part: UserPart): string | ImagePart {
  if (part.type === "text") return part.text;
  return readImage(part) ?? readTextFile(part);
}

/** The image of a part; null for other parts. */
function readImage(part: object): ImagePart | null {
  const read = toContentPart(part);
  return read?.type === "image" ? read : null;
}

function readTextFile({ mediaType, data }: LanguageModelV3FilePart): string {
  const isText = mediaType.startsWith("text/") || mediaType === "application/json";
  if (!isText || data instanceof URL)
    throw new UnsupportedFunctionalityError({
      functionality: isText ? "files by URL" : `files of type ${mediaType}`,
      message: `The model reads texts and images: it cannot be given ${isText ? "a file by its URL" : `a file of type ${mediaType}`}.`,
    });
  const bytes = typeof data === "string" ? Buffer.from(data, "base64") : data;
  return new TextDecoder().decode(bytes);
}

function readAssistantMessage(parts: readonly AssistantPart[]): ChatMessage[] {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: ToolCall[] = [];
  const results: ChatMessage[] = [];
  for (const part of parts) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type === "reasoning") thoughts.push(part.text);
    else if (part.type === "tool-call") calls.push(readToolCall(part));
    else if (part.type === "tool-result") results.push(readToolResult(part));
    else texts.push(readTextFile(part));
  }
  return [
    {
      role: "assistant",
      content: texts.join(""),
      ...(thoughts.length > 0 ? { reasoning_content: thoughts.join("\n") } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
    ...results,
  ];
}

function readToolCall({ toolCallId, toolName, input, providerOptions }: LanguageModelV3ToolCallPart): ToolCall {
  // The AI SDK drops arguments that it could not read; `describeAnswer` kept their text here.
  const written = providerOptions?.cria?.arguments;
  const given = typeof written === "string" ? written : typeof input === "string" ? input : JSON.stringify(input ?? {});
  return { id: toolCallId, type: "function", function: { name: toolName, arguments: given } };
}

function readToolResult({ toolCallId, toolName, output }: LanguageModelV3ToolResultPart): ChatMessage {
  return { role: "tool", name: toolName, tool_call_id: toolCallId, content: readOutput(output) };
}

function readOutput(output: LanguageModelV3ToolResultPart["output"]): ChatMessage["content"] {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "json":
    case "error-json":
      return JSON.stringify(output.value);
    case "execution-denied":
      return output.reason ?? "Tool execution denied.";
    case "content":
      return joinContent(output.value.map(readOutputPart), "\n");
  }
}

type OutputPart = Extract<LanguageModelV3ToolResultPart["output"], { type: "content" }>["value"][number];

/** A part of an answer; other kinds than text and image are named. */
function readOutputPart(part: OutputPart): string | ImagePart {
  if (part.type === "text") return part.text;
  return readImage(part) ?? `[${part.type}${"mediaType" in part ? `: ${part.mediaType}` : ""}]`;
}
