import type { LiveState } from "@cria/records";

/** The viewer server's data about runs. Times are milliseconds since 1970; shares and successes are between 0 and 1. */

/**
 * running: a process trains now. ended: it reached its last step. failed: it ended with an error. stale: it stopped
 * before its last step.
 */
export type RunStatus = "running" | "ended" | "failed" | "stale" | "empty";

/** `GET /api/runs` gives a list of these, the newest first. */
export interface RunSummary {
  /** Id in addresses: the folder's name below the viewed folders, one segment, safe in an address. */
  id: string;
  name: string;
  /** The folder, as the user gave it. */
  path: string;
  status: RunStatus;
  /** Last step whose metrics are written; 0 before the first. */
  step: number;
  /** Planned number of steps; null when the config does not set it. */
  total: number | null;
  startedAt: number | null;
  updatedAt: number | null;
  /** Seconds of all its steps. */
  seconds: number;
  /** Tokens that it sampled or evaluated, over all its steps. */
  tokens: number;
  /** File name of the model. */
  model: string | null;
  /** `algorithm.adv_estimator`; "sft" for supervised fine-tuning. */
  algorithm: string | null;
  seed: number | null;
  /** Held-out success of the first validation and of the last one after a step; null where there was none. */
  before: number | null;
  after: number | null;
  /**
   * Success (or mean score) of the training's conversations by step, for sft the loss: at most 60 points, for a spark
   * line.
   */
  curve: number[];
  /** Reason why the run is not fully readable: damaged, half written, or older than the known formats. */
  trouble: string | null;
}

/** `GET /api/runs/:run` */
export interface RunDetail {
  summary: RunSummary;
  /** The resolved config; null where it is missing or damaged. */
  config: Record<string, unknown> | null;
  /** Dumps that can be opened, in the order of steps. */
  dumps: DumpRef[];
  /** The coach's findings, the likeliest first. */
  findings: Finding[];
  live: LiveState | null;
  /** True if it shares its work with other machines, or did. */
  isShared: boolean;
}

/** A file of conversations. */
export interface DumpRef {
  /** Id in addresses: "20", "validation-20", "asked-20", "trajectories". */
  id: string;
  kind: "training" | "validation" | "asked" | "rollout";
  step: number | null;
  /** Bytes. */
  size: number;
}

/** `GET /api/runs/:run/metrics`: all metrics, a column each; null where a line lacks one. */
export interface MetricTable {
  /** One entry per line: the step, seconds of work since the start, tokens since the start. */
  steps: number[];
  seconds: number[];
  tokens: number[];
  columns: Record<string, (number | null)[]>;
  /** Held-out success, a point for each validation in which a conversation was judged, in the order of steps. */
  heldOut: HeldOutPoint[];
}

export interface HeldOutPoint {
  /** 0: before training. */
  step: number;
  /** The mean over the data sources: of their `acc`, or of the reward where it is a plain number. */
  success: number;
}

/** A finding of the coach: one sentence, evidence, and a remedy. */
export interface Finding {
  /** Stable name of the rule. */
  rule: string;
  severity: "high" | "medium" | "low";
  /** The problem, with numbers: one sentence. */
  sentence: string;
  /** The remedy: one sentence. */
  remedy: string;
  /** The config keys that the remedy changes. */
  keys: string[];
  /** Conversations that show it. */
  evidence: Evidence[];
}

export interface Evidence {
  /**
   * Id of a dump; its conversations that `filter` selects (in the language of `cria show --filter`), or those listed.
   */
  dump: string;
  filter: string | null;
  conversations: { uid: string; sample: number }[];
}
