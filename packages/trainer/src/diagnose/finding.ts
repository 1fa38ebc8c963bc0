/** What the coach has to say of a run: one sentence, what shows it, and what to do. Also in files and `--json`. */
export interface Finding {
  /** Stable name of the rule. */
  rule: string;
  severity: Severity;
  /** What is wrong, with numbers: one sentence. */
  sentence: string;
  /** What to do: a sentence. */
  remedy: string;
  /** The config keys that the remedy turns. */
  keys: string[];
  /** Where it can be seen. */
  evidence: Evidence[];
  /** The steps after which it held: from and to, in order. */
  steps: [from: number, to: number][];
  /** Whether it holds now; what held once and does no longer is said all the same. */
  holds: boolean;
}

/** high: nothing is learned, or the wrong thing. medium: much of the work is wasted. low: something to look at. */
export type Severity = "high" | "medium" | "low";

export interface Evidence {
  /** A file of conversations: the step of a training's, "20", or "validation-20". */
  dump: string;
  /** Which of them, in the language of `cria show --filter`; null: those listed, or the worst where none is. */
  filter: string | null;
  conversations: { uid: string; sample: number }[];
}
