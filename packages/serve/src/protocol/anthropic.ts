import type { ChatAnswer, ChatEvent, ChatToolCall } from "@cria/rollout";
import { isTooLong, type RequestError } from "../request-error.js";
import { type AnthropicCall, RAW_INPUT, readMessagesBody } from "./anthropic-request.js";
import type { AnswerContext, AnswerStream, Protocol, ServerEvent } from "./protocol.js";
import { describeNode, listLogprobs, listPromptTokens, listTokens } from "./token-fields.js";

/** `POST /v1/messages`. Token fields are those of chat completions, next to the message. */
export const anthropicMessages: Protocol<AnthropicCall> = {
  read: readMessagesBody,
  answer: (call, [answer], context) => ({
    ...writeHead(context),
    content: writeContent(answer!, call.thinking),
    ...writeStop(call, answer!),
    usage: writeUsage(answer!),
    ...writeTokens(call, answer!, context),
  }),
  stream: (call, context) => new MessageStream(call, context),
  error: writeAnthropicError,
};

/** The reason of the end. Of the stop strings it reports the request's, not the server's. */
function writeStop({ request }: AnthropicCall, { finishReason, stopString }: ChatAnswer) {
  const isAsked = finishReason === "stop" && stopString !== undefined && (request.stop ?? []).includes(stopString);
  return isAsked
    ? { stop_reason: "stop_sequence", stop_sequence: stopString, stop_details: null }
    : { stop_reason: STOP_REASONS[finishReason], stop_sequence: null, stop_details: null };
}

const STOP_REASONS = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use" } as const;

const ERROR_TYPES: Partial<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  410: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  503: "overloaded_error",
};

/** An error as the Anthropic API writes it, in a body and in a stream. */
export function writeAnthropicError(error: RequestError) {
  const { status } = error;
  // Clients recognize this error by its wording.
  const message = isTooLong(error) ? `prompt is too long: ${error.message}` : error.message;
  return { type: "error", error: { type: ERROR_TYPES[status] ?? "invalid_request_error", message } };
}

function writeHead({ id, model, fingerprint }: AnswerContext) {
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model,
    container: null,
    diagnostics: null,
    system_fingerprint: fingerprint,
  };
}

function writeContent({ message }: ChatAnswer, thinking: boolean): object[] {
  const { reasoning_content, content, tool_calls = [] } = message;
  return [
    ...(thinking && reasoning_content ? [{ type: "thinking", thinking: reasoning_content, signature: SIGNATURE }] : []),
    ...(content === "" && tool_calls.length > 0 ? [] : [{ type: "text", text: content, citations: null }]),
    ...tool_calls.map((call) => writeToolUse(call, readInput(call))),
  ];
}

function writeToolUse({ id, function: called }: ChatToolCall, input: object) {
  return { type: "tool_use", id, name: called.name, input, caller: { type: "direct" } };
}

/** Signature of thoughts. It is not verified, and a client's changes to thoughts have no effect. */
const SIGNATURE = "unsigned";

/** The arguments as a mapping. Text that is none is stored under one key, from which requests read it back. */
function readInput({ function: { arguments: text } }: ChatToolCall): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Invalid JSON is stored as text below.
  }
  return { [RAW_INPUT]: text };
}

/**
 * Usage; tokens of the prompt that were evaluated before count as read from a cache, which `input_tokens` leaves out.
 */
function writeUsage({ usage }: ChatAnswer) {
  return {
    ...noUsage,
    input_tokens: usage.promptTokens - usage.reusedTokens,
    cache_read_input_tokens: usage.reusedTokens,
    output_tokens: usage.completionTokens,
    output_tokens_details: { thinking_tokens: usage.reasoningTokens },
  };
}

const noUsage = {
  input_tokens: 0,
  cache_creation: null,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  output_tokens_details: null,
  inference_geo: null,
  server_tool_use: null,
  service_tier: null,
  speed: null,
};

function writeTokens({ wishes }: AnthropicCall, answer: ChatAnswer, context: AnswerContext) {
  return {
    ...listPromptTokens(answer, wishes),
    ...listTokens(answer, wishes),
    ...(wishes.logprobs ? { logprobs: { content: listLogprobs(answer, context) } } : {}),
    cria: describeNode(answer),
  };
}

/** Streams blocks one after another: one is open at a time, and each kind of event has its kind of block. */
class MessageStream implements AnswerStream {
  private index = -1;
  private open: "text" | "thinking" | null = null;

  constructor(
    private readonly call: AnthropicCall,
    private readonly context: AnswerContext,
  ) {}

  begin(): ServerEvent[] {
    const stop = { stop_reason: null, stop_sequence: null, stop_details: null };
    const message = { ...writeHead(this.context), content: [], ...stop, usage: noUsage };
    return [name({ type: "message_start", message }), name({ type: "ping" })];
  }

  add(_choice: number, event: ChatEvent): ServerEvent[] {
    if (event.type === "tool_call") return this.addCall(event.call);
    if (event.type === "text")
      return [...this.openBlock("text", emptyText), this.delta({ type: "text_delta", text: event.text })];
    if (!this.call.thinking) return [];
    return [
      ...this.openBlock("thinking", { type: "thinking", thinking: "", signature: "" }),
      this.delta({ type: "thinking_delta", thinking: event.text }),
    ];
  }

  end([answer]: readonly ChatAnswer[]): ServerEvent[] {
    const { message } = answer!;
    // A message has at least one block, streamed or not.
    const empty = this.index < 0 && !message.tool_calls ? this.openBlock("text", emptyText) : [];
    return [
      ...empty,
      ...this.close(),
      name({
        type: "message_delta",
        delta: { container: null, ...writeStop(this.call, answer!) },
        usage: writeUsage(answer!),
        ...writeTokens(this.call, answer!, this.context),
      }),
      name({ type: "message_stop" }),
    ];
  }

  fail(error: RequestError): ServerEvent[] {
    return [name(writeAnthropicError(error))];
  }

  private addCall(call: ChatToolCall): ServerEvent[] {
    const closed = this.close();
    this.index++;
    return [
      ...closed,
      name({ type: "content_block_start", index: this.index, content_block: writeToolUse(call, {}) }),
      this.delta({ type: "input_json_delta", partial_json: JSON.stringify(readInput(call)) }),
      name({ type: "content_block_stop", index: this.index }),
    ];
  }

  private openBlock(kind: "text" | "thinking", block: object): ServerEvent[] {
    if (this.open === kind) return [];
    const closed = this.close();
    this.open = kind;
    this.index++;
    return [...closed, name({ type: "content_block_start", index: this.index, content_block: block })];
  }

  private close(): ServerEvent[] {
    if (this.open === null) return [];
    const signed = this.open === "thinking" ? [this.delta({ type: "signature_delta", signature: SIGNATURE })] : [];
    this.open = null;
    return [...signed, name({ type: "content_block_stop", index: this.index })];
  }

  private delta(delta: object): ServerEvent {
    return name({ type: "content_block_delta", index: this.index, delta });
  }
}

const emptyText = { type: "text", text: "", citations: null };

const name = <T extends { type: string }>(data: T): ServerEvent => ({ event: data.type, data });
