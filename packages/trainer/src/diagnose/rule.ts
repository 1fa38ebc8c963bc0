import type { Severity } from "./finding.js";
import type { RunHistory } from "./run-history.js";

/** Result of a rule for a run. */
export interface Remark {
  severity: Severity;
  /** Share of the problem that it explains, 0 to 1: within a severity, the largest comes first. */
  weight: number;
  /** The problem, with numbers: a sentence without its full stop. */
  sentence: string;
  /** True if it may be the reason why a run learns nothing; the first of these is then prefixed with that symptom. */
  isCause?: boolean;
  /** The remedy: a sentence without its full stop. */
  remedy: string;
  keys: string[];
  /** Filter for `cria show` of conversations that show it; null: the worst. */
  filter: string | null;
}

/** A rule of the coach. */
export interface Rule {
  /** Stable name: findings, docs and scripts use it. */
  name: string;
  /** Condition of the rule, for docs: a sentence. */
  when: string;
  /** True if it is about what rewards teach: it is left out where a teacher alone does. */
  isOfRewards?: boolean;
  look: (run: RunHistory) => Remark | null;
}

/** 0.256 as "26 %". */
export function percent(share: number): string {
  return `${(100 * Math.min(1, share)).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** A number with at most three significant digits. */
export function shorten(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/**
 * Advice to teach by example, as the end of a sentence. A policy that has already seen examples needs more of them:
 * at temperature 1 it repeats a conversation with probability e^(-tokens x loss).
 */
export function adviseExamples(run: RunHistory): string {
  const { beginning } = run.context;
  if (!beginning) return "show the policy some conversations in each update (docs/loss-terms.md), or first (cria sft)";
  const tokens = Math.max(1, run.mean("response_length/mean"));
  const enough = Math.min(0.5, 3 / tokens);
  const { steps, loss } = beginning;
  const began = `the cria sft that this run began with ended after ${steps} steps at a loss of ${shorten(loss)} a token`;
  if (loss <= enough) return `look at what its examples lack: ${began}, which is low`;
  return `go on with its examples: ${began}, and at ${shorten(Number(enough.toPrecision(2)))} one in twenty conversations of ${tokens.toFixed(0)} tokens is sampled as it was shown (more steps, or a higher optim.lr, in the config of cria sft)`;
}
