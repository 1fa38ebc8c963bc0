/** A finding of the coach: one sentence, evidence, and a remedy. Also in files and `--json`. */
export interface Finding {
  /** Stable name of the rule. */
  rule: string;
  severity: Severity;
  /** The problem, with numbers: one sentence. */
  sentence: string;
  /** The remedy: one sentence. */
  remedy: string;
  /** Config keys that the remedy changes. */
  keys: string[];
  /** Conversations that show it. */
  evidence: Evidence[];
  /** Ranges of steps after which it held, in order. */
  steps: [from: number, to: number][];
  /** True if it holds now; a finding that no longer holds is reported, too. */
  holds: boolean;
}

/** high: nothing is learned, or the wrong thing. medium: much of the work is wasted. low: worth a look. */
export type Severity = "high" | "medium" | "low";

export interface Evidence {
  /** Id of a file of conversations: "20" for a training step, or "validation-20". */
  dump: string;
  /**
   * Selects conversations, in the language of `cria show --filter`; null: those listed, or the worst if none is
   * listed.
   */
  filter: string | null;
  conversations: { uid: string; sample: number }[];
}
