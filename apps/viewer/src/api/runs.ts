import type { ClusterView } from "./cluster.js";

/** What the viewer's server says of runs. Times are milliseconds since 1970; shares and successes are between 0 and 1. */

/** running: a process trains now. ended: it came to its last step. failed: it ended with an error. stale: it stopped on its way. */
export type RunStatus = "running" | "ended" | "failed" | "stale" | "empty";

/** `GET /api/runs` gives a list of these, the newest first. */
export interface RunSummary {
  /** Stands in addresses: the folder's name below the folders that are viewed, one segment, safe in an address. */
  id: string;
  name: string;
  /** The folder, as the user named it. */
  path: string;
  status: RunStatus;
  /** Last step whose metrics are written; 0 before the first. */
  step: number;
  /** Steps that it will take; null where the config does not say. */
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
  /** Success (or mean score) of the training's conversations by step, of sft the loss: at most 60 points, for a spark line. */
  curve: number[];
  /** Why the run cannot be read as it should be: damaged, half written, older than the formats that are known. */
  trouble: string | null;
}

/** `GET /api/runs/:run` */
export interface RunDetail {
  summary: RunSummary;
  /** The resolved config; null where it is missing or damaged. */
  config: Record<string, unknown> | null;
  /** What can be opened, in the order of steps. */
  dumps: DumpRef[];
  /** What the coach found, the likeliest first. */
  findings: Finding[];
  live: LiveState | null;
  /** Whether its work is shared with other machines, or was. */
  isShared: boolean;
}

/** A file of conversations. */
export interface DumpRef {
  /** Stands in addresses: "20", "validation-20", "asked-20", "trajectories". */
  id: string;
  kind: "training" | "validation" | "asked" | "rollout";
  step: number | null;
  /** Bytes. */
  size: number;
}

/** `GET /api/runs/:run/metrics`: all metrics, a column each; null where a line lacks one. */
export interface MetricTable {
  /** Of each line: the step, seconds of work since the start, tokens since the start. */
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
  /** The mean of the data sources' own: of their `acc`, and where a reward is a plain number of the reward. */
  success: number;
}

/** What the coach has to say: one sentence, what shows it, and what to do. */
export interface Finding {
  /** Stable name of the rule. */
  rule: string;
  severity: "high" | "medium" | "low";
  /** What is wrong, with numbers: one sentence. */
  sentence: string;
  /** What to do: a sentence. */
  remedy: string;
  /** The config keys that the remedy turns. */
  keys: string[];
  /** Where it can be seen. */
  evidence: Evidence[];
}

export interface Evidence {
  /** Id of a dump; its conversations that `filter` selects (in the language of `cria show --filter`), or those listed. */
  dump: string;
  filter: string | null;
  conversations: { uid: string; sample: number }[];
}

/** What a running training does now: `live.json` in its folder, written about once a second. `GET /api/runs/:run/live` */
export interface LiveState {
  at: number;
  process: number;
  step: number;
  total: number;
  phase: "loading" | "rollout" | "scoring" | "training" | "validation" | "saving" | "idle";
  /** Of the step under way. */
  conversations: { done: number; generating: number; waitingForTools: number; total: number };
  /** Sampled tokens per second over the last seconds; in supervised fine-tuning trained ones. */
  tokensPerSecond: number;
  /** Seconds of the run so far, by what they went into. */
  seconds: { rollout: number; scoring: number; training: number; validation: number; other: number };
  /** Seconds in which every conversation waited for tools. */
  waitingForTools: number;
  /** Seconds until the last step; null before anything is known. */
  eta: number | null;
  /** Null: all is done in one process. */
  cluster: ClusterView | null;
}
