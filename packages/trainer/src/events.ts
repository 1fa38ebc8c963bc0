import type { Finding } from "./diagnose/finding.js";
import type { StepMetrics } from "./step-metrics.js";

/** Work that takes seconds to hours and can say how far it is. */
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

/** How far a piece of work is. The first event of a piece has what was done before it began; the last has `isEnd`. */
export interface ProgressEvent {
  type: "progress";
  work: WorkName;
  done: number;
  total: number;
  /** What is counted: rows, conversations and steps are "items". */
  unit: "items" | "bytes";
  /** Of many things, which: a file that is downloaded. */
  name?: string;
  /** Nothing of this piece follows. */
  isEnd: boolean;
}

/** Rows whose prompts are too long were left out. */
export interface FilteredEvent {
  type: "filtered";
  rows: "train" | "val";
  kept: number;
  of: number;
  /** In tokens. */
  maxPromptLength: number;
}

/** A step is done. */
export interface StepEvent {
  type: "step";
  work: "train" | "sft";
  step: number;
  total: number;
  metrics: StepMetrics;
  /** Mean score of the last validation; null before the first. */
  heldOut: number | null;
}

/** A validation is done. */
export interface ValidatedEvent {
  type: "validated";
  step: number;
  /** Mean score of the conversations that did not fail; null when all did, and for sft. */
  success: number | null;
  /** Mean loss on held-out conversations, of sft. */
  loss: number | null;
  failed: number;
  conversations: number;
  /** At which the conversations were sampled, 0: greedily; null for sft. */
  temperature: number | null;
}

/** What has to be known, but does not end the run. */
export interface WarningEvent {
  type: "warning";
  text: string;
}

/** What happens to earlier runs, to damaged checkpoints and to failing trackers. */
export interface NoticeEvent {
  type: "notice";
  text: string;
}

/** Something is wrong with the run; it comes once for each rule. */
export interface ProblemEvent {
  type: "problem";
  problem: Finding;
  /** The run folder. */
  runPath: string;
}

/** What a run reports while it works. The library prints nothing: who starts a run decides what becomes of these. */
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

/** Reports one piece of work, from its beginning on. */
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

  /** Without an update before it there was no work to speak of. */
  end(): void {
    if (this.last) this.report?.({ ...this.last, isEnd: true });
    this.last = null;
  }
}
