import type { ChatMessage, JsonSchema, SampledTokens, SamplingOptions, ToolCall, ToolSchema } from "@cria/core";
import type { AnswerTimes } from "../tracing/trace-work.js";

/** Required form of an answer. JSON is enforced by a grammar, so the sampled text always parses. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object" }
  | { type: "json_schema"; schema: JsonSchema; name?: string };

/**
 * Tool use: "auto" leaves it to the model, "none" forbids it, "required" demands at least one call, `{ name }`
 * demands that tool.
 */
export type ToolChoice = "auto" | "none" | "required" | { name: string };

/** Sampling parameters of a request. A training uses its own instead, and reports them. */
export type ChatSampling = SamplingOptions;

/** A request to a model: a whole conversation, after which the assistant speaks next. */
export interface ChatRequest {
  messages: readonly ChatMessage[];
  /** Tools that the model may call. */
  tools?: readonly ToolSchema[];
  /** Default "auto". */
  toolChoice?: ToolChoice;
  /** Default text. */
  responseFormat?: ResponseFormat;
  /** Maximum number of tokens to sample, at least 1; default: the rest of the context, within the session's limits. */
  maxTokens?: number;
  /** Stop strings: each ends the answer, and is cut from it. */
  stop?: readonly string[];
  sampling?: ChatSampling;
  /** Number of top candidates to report for each sampled token, 0 (default) to 64. Does not affect sampling. */
  topLogprobs?: number;
  /**
   * Distinguishes equal requests that need separate answers. Without it, a request equal to a pending one shares its
   * answer.
   */
  choice?: number;
  /**
   * Role that the model plays in this call, for an episode in which it plays several: a seat of a game, "proposer",
   * "solver". Requests of different roles never share an answer, and their answers differ even if their messages are
   * equal. 1 to 64 letters, digits, "_" and "-".
   */
  role?: string;
}

/** A tool call of an answer. `arguments` is JSON text, or the model's raw text if that is no JSON object. */
export interface ChatToolCall extends ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** The assistant's message, with thoughts and calls in fields of their own. */
export interface ChatAnswerMessage extends ChatMessage {
  role: "assistant";
  /** Trimmed; "" if the message has only calls. */
  content: string;
  tool_calls?: ChatToolCall[];
  /** The model's thoughts, if any. */
  reasoning_content?: string;
}

export interface ChatUsage {
  /** Tokens before the answer. */
  promptTokens: number;
  /** Tokens sampled. */
  completionTokens: number;
  /** Thought tokens among `completionTokens`. */
  reasoningTokens: number;
  /** Prompt tokens whose KV entries were reused. */
  reusedTokens: number;
}

/**
 * Answer to one request. Its tokens are exactly the sampled ones, control tokens included; nothing is tokenized
 * again.
 */
export interface ChatAnswer extends SampledTokens {
  /** The answer's node in the session's message graph. */
  node: string;
  session: string;
  message: ChatAnswerMessage;
  finishReason: "stop" | "length" | "tool_calls";
  /** Prompt tokens, with -1 for each part of an image: image-vector ids are only valid inside the engine. */
  promptTokenIds: Int32Array;
  usage: ChatUsage;
  /** Absent: nobody measured them. */
  times?: AnswerTimes;
  /** Number of weight updates of the policy when the call began. */
  policyVersion: number;
}

/**
 * A piece of an answer while it is generated. The texts of one kind, joined, equal the answer's text; calls arrive
 * whole.
 */
export type ChatEvent =
  | { type: "reasoning"; text: string }
  | { type: "text"; text: string }
  | { type: "tool_call"; index: number; call: ChatToolCall };

export interface ChatOptions {
  /** Aborts the call and frees its sequence at once. */
  signal?: AbortSignal;
  /** Called with each piece of the answer, in order, before the answer is returned. */
  onEvent?: (event: ChatEvent) => void;
  /**
   * True: a request equal to a pending one is a new request, as within one program, and gets its own answer. False:
   * it is the same request sent again, as over a network, and shares the pending answer. Default true.
   */
  separate?: boolean;
}

/** A model that answers conversations: the common base of client adapters and endpoints. */
export interface ChatModel {
  /** Name of the model, for clients. */
  readonly name: string;
  /**
   * @throws DataError for an invalid request: code "chat/bad-request", or "chat/context-length" and
   * "chat/too-many-calls" when no tokens or calls are left; EngineError; the signal's reason when it aborts.
   */
  complete(request: ChatRequest, options?: ChatOptions): Promise<ChatAnswer>;
}
