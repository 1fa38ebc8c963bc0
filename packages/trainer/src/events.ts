import type { Finding } from "./diagnose/finding.js";
import type { StepMetrics } from "./step-metrics.js";

/** Kinds of work that take seconds to hours and report progress. */
export type WorkName =
  | "download"
  | "filter train"
  | "filter val"
  | "measure prompts"
  | "tokenize"
  | "validate"
  | "train"
  | "sft"
  | "rescore"
  | "replay";

/** Progress of a piece of work. Its first event has the amount done before it began; the last has `isEnd`. */
export interface ProgressEvent {
  type: "progress";
  work: WorkName;
  done: number;
  total: number;
  /** Counted unit: rows, conversations and steps are "items". */
  unit: "items" | "bytes";
  /** Name of the current item, such as a downloaded file. */
  name?: string;
  /** True for the last event of this piece of work. */
  isEnd: boolean;
}

/** Rows whose prompts are too long were dropped. */
export interface FilteredEvent {
  type: "filtered";
  rows: "train" | "val";
  kept: number;
  of: number;
  /** Limit in tokens. */
  maxPromptLength: number;
}

/** A step has finished. */
export interface StepEvent {
  type: "step";
  work: "train" | "sft";
  step: number;
  total: number;
  metrics: StepMetrics;
  /** Mean score of the last validation; null before the first. */
  heldOut: number | null;
}

/** A validation has finished. */
export interface ValidatedEvent {
  type: "validated";
  step: number;
  /** Mean score of the conversations that did not fail; null if all did, and for sft. */
  success: number | null;
  /** Mean loss on held-out conversations, for sft. */
  loss: number | null;
  failed: number;
  conversations: number;
  /** Sampling temperature of the conversations, 0: greedy; null for sft. */
  temperature: number | null;
}

/** A problem that the user should know, which does not end the run. */
export interface WarningEvent {
  type: "warning";
  text: string;
}

/** A notice about earlier runs, damaged checkpoints or failing trackers. */
export interface NoticeEvent {
  type: "notice";
  text: string;
}

/** A finding about the run; reported once per rule. */
export interface ProblemEvent {
  type: "problem";
  problem: Finding;
  /** The run folder. */
  runPath: string;
}

/** Events of a run. The library prints nothing: the caller decides what to do with them. */
export type RunEvent =
  | ProgressEvent
  | FilteredEvent
  | StepEvent
  | ValidatedEvent
  | WarningEvent
  | NoticeEvent
  | ProblemEvent;

export type Report = (event: RunEvent) => void;

/** A function that reports texts as notices. */
export function makeSay(report: Report | undefined): (text: string) => void {
  return (text) => report?.({ type: "notice", text });
}

/** Reports one piece of work from its beginning. */
export class WorkReporter {
  private last: Omit<ProgressEvent, "isEnd"> | null = null;

  constructor(
    private readonly report: Report | undefined,
    private readonly work: WorkName,
    private readonly unit: ProgressEvent["unit"] = "items",
  ) {}

  update(done: number, total: number, name?: string): void {
    this.last = { type: "progress", work: this.work, done, total, unit: this.unit, ...(name ? { name } : {}) };
    this.report?.({ ...this.last, isEnd: false });
  }

  /** Reports nothing unless there was an update before. */
  end(): void {
    if (this.last) this.report?.({ ...this.last, isEnd: true });
    this.last = null;
  }
}
