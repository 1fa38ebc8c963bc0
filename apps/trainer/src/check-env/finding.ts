/**
 * A finding about a tool or an interaction. An error breaks training; a warning may be intended; a hint is about
 * another author's code that works unchanged.
 */
export interface Finding {
  level: "error" | "warning" | "hint";
  /** The checked part: a method or "schema". */
  subject: string;
  problem: string;
  remedy?: string;
}

/** All findings about one tool or interaction. */
export interface EnvReport {
  kind: "tool" | "interaction";
  name: string;
  /** Conversations of the scripted model, and the calls that it made in them. */
  conversations: number;
  calls: number;
  findings: Finding[];
}

/** Collects findings; a finding that repeats in several conversations is kept once. */
export class Findings {
  readonly list: Finding[] = [];

  error(subject: string, problem: string, remedy?: string): void {
    this.add({ level: "error", subject, problem, remedy });
  }

  warning(subject: string, problem: string, remedy?: string): void {
    this.add({ level: "warning", subject, problem, remedy });
  }

  hint(subject: string, problem: string, remedy?: string): void {
    this.add({ level: "hint", subject, problem, remedy });
  }

  private add(finding: Finding): void {
    if (this.list.some((other) => other.subject === finding.subject && other.problem === finding.problem)) return;
    this.list.push(finding);
  }
}
