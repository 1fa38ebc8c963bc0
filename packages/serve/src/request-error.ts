import { CriaError, DataError, EngineError, type ErrorDetails, TokenizerError } from "@cria/core";

/** HTTP statuses that this endpoint answers with when a request fails. */
export type FailureStatus = 400 | 401 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 429 | 499 | 500 | 503;

/** A request that gets no answer, and the HTTP status that says so. Each protocol writes it in its own form. */
export class RequestError extends CriaError {
  constructor(
    readonly status: FailureStatus,
    summary: string,
    details: ErrorDetails & {
      /** The field of the body that is wrong, as `messages.0.role`. */
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

/** A field of a body that has a wrong value: 400. */
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

/** Whether a conversation or a prompt leaves no room for an answer: what clients shorten their history after. */
export function isTooLong({ code }: RequestError): boolean {
  return code === "chat/context-length" || code === "engine/context-exceeded";
}

/** Codes of the engine that speak of the request rather than of the engine's own state. */
const REQUEST_CODES = ["engine/context-exceeded", "engine/bad-token", "engine/bad-option"];

/**
 * What a client is told of anything that was thrown. What is wrong with the request is said in full; of other failures only
 * errors that were made on purpose are, since the text of any other may hold what is no business of a client.
 */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (!(error instanceof CriaError))
    return new RequestError(500, "failed", { code: "serve/internal", subject: "request", cause: error });
  const { subject, expected, received, remedy, code } = error;
  const isWrong =
    (error instanceof DataError && code.startsWith("chat/")) ||
    error instanceof TokenizerError ||
    (error instanceof EngineError && REQUEST_CODES.includes(code));
  // The first line is "<subject>: <summary>".
  const summary = error.message.split("\n", 1)[0]!.slice(subject.length + 2);
  const field = code === "chat/bad-image" ? subject : undefined;
  const details = { code, subject, field, expected, received, remedy, cause: error };
  return new RequestError(isWrong ? 400 : 500, summary, details);
}
