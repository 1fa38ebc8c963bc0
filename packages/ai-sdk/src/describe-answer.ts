import type {
  JSONObject,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3ToolCall,
  LanguageModelV3Usage,
  SharedV3ProviderMetadata,
} from "@ai-sdk/provider";
import type { ChatAnswer, ChatAnswerMessage, ChatToolCall } from "@cria/rollout";
import { isJsonObject } from "./is-json-object.js";
import type { CriaCallOptions } from "./read-call-options.js";

/** `providerMetadata.cria` of an answer. */
export interface CriaMetadata extends JSONObject {
  /** The policy's session that gave the answer; the answer's node is in its message graph. */
  session: string;
  node: string;
  /** Number of weight updates of the policy when the call began. */
  policyVersion: number;
  /** The sampled tokens, with control tokens. */
  tokenIds: number[];
  /** Log-probabilities of `tokenIds`: natural logarithms, under the distribution they were sampled from. */
  logprobs: number[];
  /** Prompt tokens whose KV entries were reused. */
  reusedTokens: number;
  /** Only with a grammar: 1 at tokens where the grammar removed probability. As long as `tokenIds`. */
  constrained?: number[];
  /** Only when asked for, by `providerOptions.cria.promptTokenIds`. */
  promptTokenIds?: number[];
}

/** The parts of an answer, in their order. */
export function describeContent({ content, reasoning_content, tool_calls = [] }: ChatAnswerMessage) {
  const parts: LanguageModelV3Content[] = [];
  if (reasoning_content) parts.push({ type: "reasoning", text: reasoning_content });
  if (content !== "") parts.push({ type: "text", text: content });
  return [...parts, ...tool_calls.map(describeCall)];
}

export function describeCall({ id, function: { name, arguments: input } }: ChatToolCall): LanguageModelV3ToolCall {
  return {
    type: "tool-call",
    toolCallId: id,
    toolName: name,
    input,
    // The AI SDK keeps `{}` for arguments that it cannot read, so their text goes here.
    ...(isJsonObject(input) ? {} : { providerMetadata: { cria: { arguments: input } } }),
  };
}

export function describeUsage({ usage }: ChatAnswer): LanguageModelV3Usage {
  const { promptTokens, completionTokens, reasoningTokens, reusedTokens } = usage;
  return {
    inputTokens: {
      total: promptTokens,
      noCache: promptTokens - reusedTokens,
      cacheRead: reusedTokens,
      cacheWrite: undefined,
    },
    outputTokens: {
      total: completionTokens,
      text: completionTokens - reasoningTokens,
      reasoning: reasoningTokens,
    },
  };
}

/** Usage of an answer that failed. */
export const unknownUsage: LanguageModelV3Usage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

export function describeFinish({ finishReason }: ChatAnswer): LanguageModelV3FinishReason {
  return { unified: finishReason === "tool_calls" ? "tool-calls" : finishReason, raw: finishReason };
}

export function describeMetadata(answer: ChatAnswer, own: CriaCallOptions): SharedV3ProviderMetadata {
  const { session, node, policyVersion, tokenIds, logprobs, constrained, promptTokenIds, usage } = answer;
  const cria: CriaMetadata = {
    session,
    node,
    policyVersion,
    tokenIds: Array.from(tokenIds),
    logprobs: Array.from(logprobs),
    reusedTokens: usage.reusedTokens,
    ...(constrained ? { constrained: Array.from(constrained) } : {}),
    ...(own.promptTokenIds ? { promptTokenIds: Array.from(promptTokenIds) } : {}),
  };
  return { cria };
}
