import { APICallError } from "@ai-sdk/provider";
import { DataError } from "@cria/core";

/**
 * An error of the policy as clients of the AI SDK know errors: a request that is wrong, or has no token or no call left, is an
 * `APICallError` with status 400, which is not tried again. What was thrown is its cause; all else stays as it is.
 */
export function toApiError(error: unknown, modelId: string): unknown {
  if (!(error instanceof DataError) || !error.code.startsWith("chat/")) return error;
  return new APICallError({
    message: error.message,
    url: `cria:${modelId}`,
    requestBodyValues: {},
    statusCode: 400,
    isRetryable: false,
    data: { code: error.code },
    cause: error,
  });
}
