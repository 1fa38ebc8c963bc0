/**
 * Something about a tool or an interaction. An error breaks training; a warning may be meant; a hint is about what others wrote,
 * and that works as it is.
 */
export interface Finding {
  level: "error" | "warning" | "hint";
  /** What was looked at: a method or "schema". */
  subject: string;
  problem: string;
  remedy?: string;
}

/** Everything found about one tool or interaction. */
export interface EnvReport {
  kind: "tool" | "interaction";
  name: string;
  /** Conversations that the scripted model had with it, and calls that it answered in them. */
  conversations: number;
  calls: number;
  findings: Finding[];
}

/** Collects findings; the same one is told once, however many conversations had it. */
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
