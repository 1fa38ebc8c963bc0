import type { TurnCall } from "@cria/core";
import type { DumpCall } from "./dump-line.js";

/** Converts a call to its form in a dump. */
export function describeCall({ request, ...call }: TurnCall): DumpCall {
  const { toolChoice, responseFormat, maxTokens, topLogprobs, ...rest } = request;
  const named = {
    tool_choice: toolChoice,
    response_format: responseFormat,
    max_tokens: maxTokens,
    top_logprobs: topLogprobs,
  };
  return { ...call, request: dropUndefined({ ...named, ...rest }) };
}

/** Reads a call back from a dump's line. */
export function restoreCall({ request, ...call }: DumpCall): TurnCall {
  const { tool_choice, response_format, max_tokens, top_logprobs, ...rest } = request;
  const named = {
    toolChoice: tool_choice,
    responseFormat: response_format,
    maxTokens: max_tokens,
    topLogprobs: top_logprobs,
  };
  return { ...call, request: dropUndefined({ ...named, ...rest }) };
}

function dropUndefined(given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
