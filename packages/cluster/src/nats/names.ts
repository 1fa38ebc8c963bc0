/** The streams of a bus, by role. `prefix`: letters, digits and `-`. */
export function nameStreams(prefix: string) {
  return {
    jobs: `${prefix}-jobs`,
    jobSubject: `${prefix}.jobs`,
    records: `${prefix}-records`,
    workers: `${prefix}-workers`,
    control: `${prefix}-control`,
    blobs: `${prefix}-blobs`,
  };
}

export type StreamNames = ReturnType<typeof nameStreams>;

/** Roles of clients. Each has its own subjects for answers, so that one role cannot read another's. */
export const roles = ["coordinator", "worker", "observer"] as const;
export type Role = (typeof roles)[number];
export const inboxOf = (role: Role): string => `_INBOX_${role}`;
