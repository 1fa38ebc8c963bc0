/** What every error of Cria tells its reader. */
export interface ErrorDetails {
  /** Stable machine-readable name, for example `engine/context-exceeded`. */
  code: string;
  /** What the error is about: a file, a config key, a row, a tool. */
  subject: string;
  /** What would have been right. */
  expected?: string;
  /** What was found instead. */
  received?: string;
  /** What the reader can do about it. */
  remedy?: string;
  cause?: unknown;
}

/** Base of every error that Cria throws on purpose. Its message names subject, expected, received and remedy. */
export class CriaError extends Error {
  readonly code: string;
  declare readonly subject: string;
  declare readonly expected?: string;
  declare readonly received?: string;
  declare readonly remedy?: string;

  constructor(summary: string, details: ErrorDetails) {
    super(formatMessage(summary, details), details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code;
    // Who prints the error sees them in its message, not once more beside it.
    for (const field of ["subject", "expected", "received", "remedy"] as const)
      Object.defineProperty(this, field, { value: details[field], writable: true, configurable: true });
  }
}

function formatMessage(summary: string, details: ErrorDetails): string {
  const lines = [`${details.subject}: ${summary}`];
  if (details.expected !== undefined) lines.push(`  expected: ${details.expected}`);
  if (details.received !== undefined) lines.push(`  received: ${details.received}`);
  if (details.remedy !== undefined) lines.push(`  try: ${details.remedy}`);
  return lines.join("\n");
}
