import type { ChatMessage, JsonSchema, TokenCandidate, ToolCall, ToolSchema } from "@cria/core";

/** What an answer must look like. JSON is enforced by a grammar: what is sampled can be parsed. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object" }
  | { type: "json_schema"; schema: JsonSchema; name?: string };

/** Whether the model may call tools: as it likes, not at all, at least one, or just the named one. */
export type ToolChoice = "auto" | "none" | "required" | { name: string };

/** How a client wants tokens drawn. A training enforces its own and reports that it did. */
export interface ChatSampling {
  /** At least 0; 0 is greedy. */
  temperature?: number;
  /** In (0, 1]. */
  topP?: number;
  /** At least 0; 0: all tokens. */
  topK?: number;
  /** In [0, 1). */
  minP?: number;
  /** 32-bit. */
  seed?: number;
}

/** One call of a model: a whole conversation that ends where the assistant speaks next. */
export interface ChatRequest {
  messages: readonly ChatMessage[];
  /** Tools that the model may call. */
  tools?: readonly ToolSchema[];
  /** Default "auto". */
  toolChoice?: ToolChoice;
  /** Default text. */
  responseFormat?: ResponseFormat;
  /** Most tokens to sample, at least 1; default: what context and limits leave. */
  maxTokens?: number;
  /** Texts that end the answer; they are cut from it. */
  stop?: readonly string[];
  sampling?: ChatSampling;
  /** How many of the likeliest tokens to tell beside each sampled one; 0 (default) to 64. Changes nothing that is sampled. */
  topLogprobs?: number;
  /** Tells equal requests apart that want answers of their own; without it one that waits for the answer of another gets that. */
  choice?: number;
}

/** A call of an answer. `arguments` is JSON text: what the model wrote where that is no object. */
export interface ChatToolCall extends ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** The assistant's message: without its thoughts, its calls in a field of their own. */
export interface ChatAnswerMessage extends ChatMessage {
  role: "assistant";
  /** Without white space around it; "" where there are only calls. */
  content: string;
  tool_calls?: ChatToolCall[];
  /** What it thought first, where it did. */
  reasoning_content?: string;
}

export interface ChatUsage {
  /** Tokens before the answer. */
  promptTokens: number;
  /** Tokens sampled. */
  completionTokens: number;
  /** Those of them that are thoughts. */
  reasoningTokens: number;
  /** Tokens of the prompt that were evaluated before. */
  reusedTokens: number;
}

/** What a call gave. Its tokens are those that were sampled, control tokens included, never tokenized again. */
export interface ChatAnswer {
  /** The answer's node in the session's message graph. */
  node: string;
  session: string;
  message: ChatAnswerMessage;
  finishReason: "stop" | "length" | "tool_calls";
  /** -1 for each part of an image: such ids mean nothing outside of the engine. */
  promptTokenIds: Int32Array;
  tokenIds: Int32Array;
  /** One for each of `tokenIds`, of the distribution that was sampled from. */
  logprobs: Float32Array;
  /** Only with a grammar: 1 where it took probability away. As long as `tokenIds`. */
  constrained?: Uint8Array;
  /** Where they were asked for: the likeliest tokens, by falling logprob, for each of `tokenIds`. */
  topLogprobs?: TokenCandidate[][];
  /** The text that ended the answer and was cut from it; left out where none did. */
  stopString?: string;
  usage: ChatUsage;
  /** Updates that the policy had seen when the call began. */
  policyVersion: number;
}

/** A piece of an answer as it is made. Texts of one kind, joined, are that of the answer; calls come whole. */
export type ChatEvent =
  | { type: "reasoning"; text: string }
  | { type: "text"; text: string }
  | { type: "tool_call"; index: number; call: ChatToolCall };

export interface ChatOptions {
  /** Ends the call: its sequence's place is free at once. */
  signal?: AbortSignal;
  /** Called with each piece of the answer, in order, before the answer is returned. */
  onEvent?: (event: ChatEvent) => void;
  /**
   * Whether an equal request that still waits for its answer is another one, as in one program, rather than the same one sent again,
   * as over a network: it then gets an answer of its own. Default true.
   */
  separate?: boolean;
}

/** A model that answers conversations: what adapters of client libraries and endpoints stand on. */
export interface ChatModel {
  /** Name of the model, for clients. */
  readonly name: string;
  /**
   * @throws DataError for a request that is wrong: code "chat/bad-request", or "chat/context-length" and
   * "chat/too-many-calls" where no token or no call is left; EngineError; the signal's reason when it aborts.
   */
  complete(request: ChatRequest, options?: ChatOptions): Promise<ChatAnswer>;
}
