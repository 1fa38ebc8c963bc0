import { isTooLong, type RequestError } from "../request-error.js";

/** An error as the OpenAI API writes it, in a body and in a stream. */
export function writeOpenAiError(error: RequestError): { error: object } {
  const { message, code, field, status } = error;
  const type = nameType(status);
  const param = field ?? null;
  // Clients recognize this error by its code, or by its wording.
  if (isTooLong(error))
    return { error: { message: `maximum context length: ${message}`, type, param, code: "context_length_exceeded" } };
  return { error: { message, type, param, code } };
}

function nameType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 404 || status === 410) return "not_found_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}
