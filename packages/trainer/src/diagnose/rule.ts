import type { Severity } from "./finding.js";
import type { RunHistory } from "./run-history.js";

/** What a rule has to say of a run. */
export interface Remark {
  severity: Severity;
  /** How much of the trouble it explains, 0 to 1: of findings of one severity the heaviest comes first. */
  weight: number;
  /** What is wrong, with numbers: a sentence without its full stop. */
  sentence: string;
  /** Whether it is why a run learns nothing, where one does: the first of them has that symptom in front. */
  isCause?: boolean;
  /** What to do: a sentence without its full stop. */
  remedy: string;
  keys: string[];
  /** Which conversations show it, for `cria show`; null: the worst. */
  filter: string | null;
}

/** Something that goes wrong in runs. */
export interface Rule {
  /** Stable: findings, docs and scripts name it. */
  name: string;
  /** When it speaks, for docs: a sentence. */
  when: string;
  look: (run: RunHistory) => Remark | null;
}

/** 0.256 as "26 %". */
export function percent(share: number): string {
  return `${(100 * Math.min(1, share)).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** A number with at most three digits that count. */
export function shorten(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/**
 * The advice to teach by example, as the end of a sentence. A policy that has seen examples already needs more of them: sampled at
 * temperature 1 it repeats a conversation of so many tokens once in e^(tokens x loss).
 */
export function adviseExamples(run: RunHistory): string {
  const { beginning } = run.context;
  if (!beginning) return "show the policy some conversations first (cria sft)";
  const tokens = Math.max(1, run.mean("response_length/mean"));
  const enough = Math.min(0.5, 3 / tokens);
  const { steps, loss } = beginning;
  const began = `the cria sft that this run began with ended after ${steps} steps at a loss of ${shorten(loss)} a token`;
  if (loss <= enough) return `look at what its examples lack: ${began}, which is low`;
  return `go on with its examples: ${began}, and at ${shorten(Number(enough.toPrecision(2)))} one in twenty conversations of ${tokens.toFixed(0)} tokens is sampled as it was shown (more steps, or a higher optim.lr, in the config of cria sft)`;
}
