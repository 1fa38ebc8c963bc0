import { ConfigError } from "./errors/config-error.js";
import type { DataError } from "./errors/data-error.js";

export interface UnreadableDetails {
  /** Default: "cannot be read". */
  summary?: string;
  /** The file, or the config key that names it. */
  subject: string;
  /** What was to be read: "a readable YAML file". */
  expected: string;
  /** Called when it is needed. */
  remedy?: () => string | undefined;
}

/**
 * What `read` gives, or the promise of it: a file's text, what was parsed of it, or a module. Whatever it throws becomes one
 * error that says what could not be read and why.
 * @param Unreadable what is thrown: ConfigError for what configures a run, DataError for what runs write and read.
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
