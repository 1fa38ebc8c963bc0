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
  readonly subject: string;
  readonly expected?: string;
  readonly received?: string;
  readonly remedy?: string;

  constructor(summary: string, details: ErrorDetails) {
    super(formatMessage(summary, details), details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code;
    this.subject = details.subject;
    this.expected = details.expected;
    this.received = details.received;
    this.remedy = details.remedy;
  }
}

function formatMessage(summary: string, details: ErrorDetails): string {
  const lines = [`${details.subject}: ${summary}`];
  if (details.expected !== undefined) lines.push(`  expected: ${details.expected}`);
  if (details.received !== undefined) lines.push(`  received: ${details.received}`);
  if (details.remedy !== undefined) lines.push(`  try: ${details.remedy}`);
  return lines.join("\n");
}
