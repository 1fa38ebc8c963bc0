import { APICallError } from "@ai-sdk/provider";
import { DataError } from "@cria/core";

/**
 * An error of the policy in the form that clients of the AI SDK know: a wrong request, or one without any token or call
 * left, is an `APICallError` with status 400, which is not retried. Its cause is the given error; other errors are
 * returned unchanged.
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
