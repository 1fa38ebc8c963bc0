import { CriaError, DataError, EngineError, type ErrorDetails, TokenizerError } from "@cria/core";

/** HTTP statuses of failed requests. */
export type FailureStatus = 400 | 401 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 429 | 499 | 500 | 503;

/** A failed request and its HTTP status. Each protocol writes it in its form. */
export class RequestError extends CriaError {
  constructor(
    readonly status: FailureStatus,
    summary: string,
    details: ErrorDetails & {
      /** The wrong field of the body, as `messages.0.role`. */
      field?: string;
      /** Seconds after which another try may succeed. */
      retryAfter?: number;
    },
  ) {
    super(summary, details);
    this.field = details.field;
    this.retryAfter = details.retryAfter;
  }

  readonly field?: string;
  readonly retryAfter?: number;
}

/** A 400 for a field of the body with a wrong value. */
export function refuseField(field: string, expected: string, received: string, remedy?: string): RequestError {
  return new RequestError(400, "has a wrong value", {
    code: "serve/bad-field",
    subject: field,
    field,
    expected,
    received,
    remedy,
  });
}

/** The error of a request whose client has disconnected; nobody reads it. */
export function makeGone(cause: unknown): RequestError {
  return new RequestError(499, "was abandoned by its client", { code: "serve/client-gone", subject: "request", cause });
}

/** True if a conversation or a prompt leaves no room for an answer; clients shorten their history then. */
export function isTooLong({ code }: RequestError): boolean {
  return code === "chat/context-length" || code === "engine/context-exceeded";
}

/** Engine codes that are about the request rather than about the engine's state. */
const REQUEST_CODES = ["engine/context-exceeded", "engine/bad-token", "engine/bad-option"];

/**
 * The error that a client gets for any exception. Errors about the request are reported in full. Of other failures only
 * Cria's errors keep their text, since the text of any other may hold private data.
 */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (!(error instanceof CriaError))
    return new RequestError(500, "failed", { code: "serve/internal", subject: "request", cause: error });
  const { subject, summary, expected, received, remedy, code } = error;
  const isWrong =
    (error instanceof DataError && code.startsWith("chat/")) ||
    error instanceof TokenizerError ||
    (error instanceof EngineError && REQUEST_CODES.includes(code));
  const field = code === "chat/bad-image" ? subject : undefined;
  const details = { code, subject, field, expected, received, remedy, cause: error };
  return new RequestError(isWrong ? 400 : 500, summary, details);
}
