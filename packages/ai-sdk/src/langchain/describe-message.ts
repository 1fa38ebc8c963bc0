import type { ChatAnswer, ChatToolCall } from "@cria/rollout";
import {
  AIMessage,
  AIMessageChunk,
  type InvalidToolCall,
  type ToolCall,
  type ToolCallChunk,
  type UsageMetadata,
} from "@langchain/core/messages";
import { describeMetadata } from "../describe-answer.js";
import { isJsonObject } from "../is-json-object.js";

/** An answer as LangChain's message. What only the policy knows is in `response_metadata.cria`. */
export function describeMessage(answer: ChatAnswer, modelName: string): AIMessage {
  const { content, reasoning_content, tool_calls: calls = [] } = answer.message;
  return new AIMessage({
    content,
    additional_kwargs: reasoning_content === undefined ? {} : { reasoning_content },
    tool_calls: calls.filter(isReadable).map(describeCall),
    invalid_tool_calls: calls.filter((call) => !isReadable(call)).map(describeInvalidCall),
    usage_metadata: describeUsage(answer),
    response_metadata: describeResponse(answer, modelName),
  });
}

/** The last piece of a stream: what is known when the answer is whole. */
export function describeEnd(answer: ChatAnswer, modelName: string): AIMessageChunk {
  return new AIMessageChunk({
    content: "",
    usage_metadata: describeUsage(answer),
    response_metadata: describeResponse(answer, modelName),
  });
}

/** A call within a stream. */
export function describeCallChunk(
  index: number,
  { id, function: { name, arguments: args } }: ChatToolCall,
): ToolCallChunk {
  // LangChain would mend text that looks like JSON cut off: as JSON of a text it stays a call that cannot be read.
  const safe = isJsonObject(args) || isJsonText(args) ? args : JSON.stringify(args);
  return { type: "tool_call_chunk", index, id, name, args: safe };
}

function isReadable({ function: { arguments: args } }: ChatToolCall): boolean {
  return isJsonObject(args);
}

function describeCall({ id, function: { name, arguments: args } }: ChatToolCall): ToolCall {
  return { type: "tool_call", id, name, args: JSON.parse(args) as Record<string, unknown> };
}

function describeInvalidCall({ id, function: { name, arguments: args } }: ChatToolCall): InvalidToolCall {
  return { type: "invalid_tool_call", id, name, args, error: "The arguments are no JSON object." };
}

function describeUsage({ usage }: ChatAnswer): UsageMetadata {
  const { promptTokens, completionTokens, reasoningTokens, reusedTokens } = usage;
  return {
    input_tokens: promptTokens,
    output_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    input_token_details: { cache_read: reusedTokens },
    output_token_details: { reasoning: reasoningTokens },
  };
}

function describeResponse(answer: ChatAnswer, modelName: string) {
  const { cria } = describeMetadata(answer, {});
  const toolCallIds = answer.message.tool_calls?.map(({ id }) => id);
  return {
    model_name: modelName,
    model_provider: "cria",
    finish_reason: answer.finishReason,
    cria: { ...cria, ...(toolCallIds ? { toolCallIds } : {}) },
  };
}

function isJsonText(json: string): boolean {
  try {
    return typeof JSON.parse(json) === "string";
  } catch {
    return false;
  }
}
