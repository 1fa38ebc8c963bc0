import type { ChatAnswer, ChatEvent } from "@cria/rollout";
import type { RequestError } from "../request-error.js";
import { type OpenAiChatCall, readChatBody } from "./openai-chat-request.js";
import { writeOpenAiError } from "./openai-errors.js";
import type { AnswerContext, AnswerStream, Protocol, ServerEvent } from "./protocol.js";
import { describeNode, joinUsage, listLogprobs, listPromptTokens, listTokens } from "./token-fields.js";

/** `POST /v1/chat/completions`, with vLLM's fields for tokens: `return_token_ids`, `token_ids`, `prompt_token_ids`. */
export const openAiChat: Protocol<OpenAiChatCall> = {
  read: readChatBody,
  answer: (call, answers, context) => ({
    ...writeHead(context, "chat.completion"),
    choices: answers.map((answer, index) => ({
      index,
      message: writeMessage(answer),
      ...writeEnd(call, answer, context),
    })),
    usage: writeUsage(answers),
    ...listPromptTokens(answers[0]!, call.wishes),
    cria: describeNode(answers[0]!),
  }),
  stream: (call, context) => new ChatStream(call, context),
  error: writeOpenAiError,
};

function writeHead({ id, created, model, fingerprint }: AnswerContext, object: string) {
  return { id: `chatcmpl-${id}`, object, created, model, system_fingerprint: fingerprint };
}

function writeMessage({ message }: ChatAnswer) {
  const { content, tool_calls, reasoning_content } = message;
  return {
    role: "assistant",
    content: content === "" && tool_calls ? null : content,
    refusal: null,
    ...(reasoning_content === undefined ? {} : { reasoning_content }),
    ...(tool_calls ? { tool_calls } : {}),
  };
}

/** Final fields of a choice, streamed or not. With several choices each names its node. */
function writeEnd({ wishes, n }: OpenAiChatCall, answer: ChatAnswer, context: AnswerContext) {
  return {
    logprobs: wishes.logprobs ? { content: listLogprobs(answer, context), refusal: null } : null,
    finish_reason: answer.finishReason,
    ...listTokens(answer, wishes),
    ...(n > 1 ? { cria: describeNode(answer) } : {}),
  };
}

function writeUsage(answers: readonly ChatAnswer[]) {
  const { prompt, completion, reasoning, reused } = joinUsage(answers);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: reused },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

/** Streams text as it comes; ids and logprobs come once, with the last piece of their choice. */
class ChatStream implements AnswerStream {
  constructor(
    private readonly call: OpenAiChatCall,
    private readonly context: AnswerContext,
  ) {}

  begin(): ServerEvent[] {
    return Array.from({ length: this.call.n }, (_, index) => this.piece(index, { role: "assistant", content: "" }));
  }

  add(choice: number, event: ChatEvent): ServerEvent[] {
    if (event.type === "text") return [this.piece(choice, { content: event.text })];
    if (event.type === "reasoning") return [this.piece(choice, { reasoning_content: event.text })];
    return [this.piece(choice, { tool_calls: [{ index: event.index, ...event.call }] })];
  }

  end(answers: readonly ChatAnswer[]): ServerEvent[] {
    const { call, context } = this;
    const last = answers.map((answer, index) =>
      this.chunk(
        [{ index, delta: {}, ...writeEnd(call, answer, context) }],
        index === 0 ? { ...listPromptTokens(answer, call.wishes), cria: describeNode(answer) } : {},
      ),
    );
    const usage = call.includeUsage ? [this.chunk([], { usage: writeUsage(answers) })] : [];
    return [...last, ...usage, { data: "[DONE]" }];
  }

  fail(error: RequestError): ServerEvent[] {
    return [{ data: writeOpenAiError(error) }, { data: "[DONE]" }];
  }

  private piece(index: number, delta: object): ServerEvent {
    return this.chunk([{ index, delta, logprobs: null, finish_reason: null }]);
  }

  private chunk(choices: object[], more: object = {}): ServerEvent {
    const usage = this.call.includeUsage ? { usage: null } : {};
    return { data: { ...writeHead(this.context, "chat.completion.chunk"), choices, ...usage, ...more } };
  }
}
