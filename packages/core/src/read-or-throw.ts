import { ConfigError } from "./errors/config-error.js";
import type { DataError } from "./errors/data-error.js";

export interface UnreadableDetails {
  /** Default: "cannot be read". */
  summary?: string;
  /** The file, or the config key that names it. */
  subject: string;
  /** The expected content: "a readable YAML file". */
  expected: string;
  /** Called only when needed. */
  remedy?: () => string | undefined;
}

/**
 * The result of `read`, or a promise of it: a file's text, its parsed content, or a module. Any error of `read` becomes
 * one error with the file and the reason.
 * @param Unreadable class of the error: ConfigError for configuration of a run, DataError for files that runs write and
 * read.
 * @throws ConfigError "config/unreadable" or DataError "data/unreadable".
 */
export function readOrThrow<T>(
  read: () => T,
  Unreadable: typeof ConfigError | typeof DataError,
  details: UnreadableDetails,
): T {
  const fail = (cause: unknown): never => {
    throw new Unreadable(details.summary ?? "cannot be read", {
      code: Unreadable === ConfigError ? "config/unreadable" : "data/unreadable",
      subject: details.subject,
      expected: details.expected,
      received: cause instanceof Error ? cause.message : String(cause),
      remedy: details.remedy?.(),
      cause,
    });
  };
  try {
    const value = read();
    return value instanceof Promise ? (value.catch(fail) as T) : value;
  } catch (cause) {
    return fail(cause);
  }
}
