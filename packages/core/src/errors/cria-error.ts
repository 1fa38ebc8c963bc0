/** Details of an error for its reader. */
export interface ErrorDetails {
  /** Stable machine-readable name, for example `engine/context-exceeded`. */
  code: string;
  /** The thing that the error is about: a file, a config key, a row, a tool. */
  subject: string;
  /** Description of a valid value. */
  expected?: string;
  /** The value that was found instead. */
  received?: string;
  /** Steps that the reader can take. */
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
    // Printing an error shows these fields in the message; enumerable properties would show them again.
    for (const field of ["subject", "expected", "received", "remedy"] as const)
      Object.defineProperty(this, field, { value: details[field], writable: true, configurable: true });
  }

  /** The problem: the first line of the message, without the subject. */
  get summary(): string {
    return this.message.split("\n", 1)[0]!.slice(`${this.subject}: `.length);
  }
}

function formatMessage(summary: string, details: ErrorDetails): string {
  const lines = [`${details.subject}: ${summary}`];
  if (details.expected !== undefined) lines.push(`  expected: ${details.expected}`);
  if (details.received !== undefined) lines.push(`  received: ${details.received}`);
  if (details.remedy !== undefined) lines.push(`  try: ${details.remedy}`);
  return lines.join("\n");
}
