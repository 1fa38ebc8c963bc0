import { DataError, type JsonSchema, type ToolSchema } from "@cria/core";
import type { ChatEvent, ChatModel, ChatRequest, ChatSampling, ResponseFormat, ToolChoice } from "@cria/rollout";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { ContextOverflowError } from "@langchain/core/errors";
import type { BaseLanguageModelInput, StructuredOutputMethodOptions } from "@langchain/core/language_models/base";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BaseChatModelParams,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import {
  assembleStructuredOutputPipeline,
  createContentParser,
  createFunctionCallingParser,
} from "@langchain/core/language_models/structured_output";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { describeCallChunk, describeEnd, describeMessage } from "./describe-message.js";
import { EventQueue } from "./event-queue.js";
import { readMessages } from "./read-messages.js";

/** What a call may ask beside its messages; also given once and for all to `chatModel`. */
export interface CriaCallSettings extends ChatSampling {
  /** Most tokens to sample, at least 1. */
  maxTokens?: number;
  stop?: string[];
}

export interface CriaChatCallOptions extends BaseChatModelCallOptions, CriaCallSettings {
  stop?: string[];
  tools?: ToolSchema[];
  responseFormat?: ResponseFormat;
}

export type CriaChatModelFields = BaseChatModelParams & CriaCallSettings;

/** The policy as a chat model of LangChain. Messages of the answer have `response_metadata.cria`, a `CriaMetadata`. */
export function chatModel(chat: ChatModel, fields: CriaChatModelFields = {}): CriaChatModel {
  return new CriaChatModel(chat, fields);
}

export class CriaChatModel extends BaseChatModel<CriaChatCallOptions> {
  private readonly settings: CriaCallSettings;

  constructor(
    private readonly chat: ChatModel,
    fields: CriaChatModelFields,
  ) {
    super(fields);
    const { temperature, topP, topK, minP, seed, maxTokens, stop } = fields;
    this.settings = { temperature, topP, topK, minP, seed, maxTokens, stop };
  }

  static override lc_name(): string {
    return "CriaChatModel";
  }

  override _llmType(): string {
    return "cria";
  }

  /** Binds tools of LangChain, or schemas in OpenAI's form. */
  override bindTools(tools: BindToolsInput[], kwargs: Partial<CriaChatCallOptions> = {}) {
    return this.withConfig({ tools: tools.map(readTool), ...kwargs } as Partial<CriaChatCallOptions>);
  }

  override async _generate(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    const request = this.makeRequest(messages, options);
    const onEvent = (event: ChatEvent) => {
      // What a handler makes of a token is its own affair; the answer does not wait for it.
      if (event.type === "text") void runManager?.handleLLMNewToken(event.text)?.catch(() => undefined);
    };
    const answer = await this.ask(() => this.chat.complete(request, { signal: options.signal, onEvent }));
    const message = describeMessage(answer, this.chat.name);
    return { generations: [{ text: answer.message.content, message }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const request = this.makeRequest(messages, options);
    const left = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
    const queue = new EventQueue<ChatGenerationChunk>();
    const onEvent = (event: ChatEvent) => queue.add(makeChunk(event));
    this.ask(() => this.chat.complete(request, { signal, onEvent })).then(
      (answer) => {
        queue.add(new ChatGenerationChunk({ text: "", message: describeEnd(answer, this.chat.name) }));
        queue.end();
      },
      (error: unknown) => queue.end(error),
    );
    try {
      for await (const chunk of queue.take()) {
        yield chunk;
        await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
      }
    } finally {
      left.abort();
    }
  }

  /**
   * Answers of a form. By default their JSON is enforced by a grammar; `method` "functionCalling" asks for a call in its place,
   * "jsonMode" for any JSON.
   */
  override withStructuredOutput(
    // biome-ignore lint/suspicious/noExplicitAny: one signature for the eight of the base class.
    schema: any,
    config: StructuredOutputMethodOptions<boolean> = {},
    // biome-ignore lint/suspicious/noExplicitAny: as above.
  ): Runnable<BaseLanguageModelInput, any> {
    const { method = "jsonSchema", includeRaw } = config;
    const jsonSchema = dropDialect(toJsonSchema(schema));
    const name = config.name ?? (typeof jsonSchema.title === "string" ? jsonSchema.title : "extract");
    if (method === "functionCalling") {
      const tool: ToolSchema = { type: "function", function: { name, parameters: jsonSchema } };
      const calling = this.bindTools([tool], { tool_choice: name });
      return assembleStructuredOutputPipeline(calling, createFunctionCallingParser(schema, name), includeRaw);
    }
    const format: ResponseFormat =
      method === "jsonMode" ? { type: "json_object" } : { type: "json_schema", schema: jsonSchema, name };
    return assembleStructuredOutputPipeline(
      this.withConfig({ responseFormat: format } as Partial<CriaChatCallOptions>),
      createContentParser(schema),
      includeRaw,
    );
  }

  private makeRequest(messages: readonly BaseMessage[], options: this["ParsedCallOptions"]): ChatRequest {
    const { settings } = this;
    const own = options as CriaChatCallOptions;
    const { tools = [], tool_choice, responseFormat } = own;
    const sampling: ChatSampling = {};
    for (const name of ["temperature", "topP", "topK", "minP", "seed"] as const) {
      const value = own[name] ?? settings[name];
      if (value !== undefined) sampling[name] = value;
    }
    const maxTokens = own.maxTokens ?? settings.maxTokens;
    const stop = own.stop ?? settings.stop;
    return {
      messages: readMessages(messages),
      ...(tools.length > 0 ? { tools } : {}),
      ...(tools.length > 0 && tool_choice !== undefined ? { toolChoice: readToolChoice(tool_choice) } : {}),
      ...(responseFormat ? { responseFormat } : {}),
      ...(maxTokens === undefined ? {} : { maxTokens }),
      ...(stop && stop.length > 0 ? { stop } : {}),
      ...(Object.keys(sampling).length > 0 ? { sampling } : {}),
    };
  }

  /** A conversation that is too long is said in LangChain's own way. */
  private async ask<Answer>(complete: () => Promise<Answer>): Promise<Answer> {
    try {
      return await complete();
    } catch (error) {
      if (error instanceof DataError && error.code === "chat/context-length")
        throw ContextOverflowError.fromError(error);
      throw error;
    }
  }
}

function makeChunk(event: ChatEvent): ChatGenerationChunk {
  if (event.type === "text")
    return new ChatGenerationChunk({ text: event.text, message: new AIMessageChunk({ content: event.text }) });
  const fields =
    event.type === "reasoning"
      ? { additional_kwargs: { reasoning_content: event.text } }
      : { tool_call_chunks: [describeCallChunk(event.index, event.call)] };
  return new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "", ...fields }) });
}

function readTool(tool: BindToolsInput): ToolSchema {
  const { type, function: f } = convertToOpenAITool(tool) as Partial<ToolSchema>;
  if (type !== "function" || typeof f?.name !== "string")
    throw new DataError("is no function", {
      code: "chat/bad-request",
      subject: "bindTools: tool",
      expected: "a tool of LangChain, or { type: 'function', function: { name, parameters } }",
      received: JSON.stringify(tool)?.slice(0, 200),
    });
  const { name, description, parameters } = f;
  return {
    type,
    function: { name, ...(description ? { description } : {}), parameters: dropDialect(parameters ?? {}) },
  };
}

/** The dialect says nothing to a model. */
function dropDialect({ $schema: _, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

function readToolChoice(choice: NonNullable<BaseChatModelCallOptions["tool_choice"]>): ToolChoice {
  if (typeof choice === "object") return { name: String(choice.function?.name ?? choice.name) };
  if (choice === "any" || choice === "required") return "required";
  return choice === "auto" || choice === "none" ? choice : { name: choice };
}
