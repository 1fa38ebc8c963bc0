import type { Finding } from "../diagnose/finding.js";
import type { StepMetrics } from "../step-metrics.js";
import type { RunProgress } from "../validation/measure-progress.js";

/** Summary of a run. */
export interface TrainSummary {
  /** The run folder. */
  path: string;
  /**
   * File of the trained weights; it is not written with `val_only`. With an adapter for each role, the name that theirs
   * are made of: adapter_buyer.gguf of adapter.gguf.
   */
  weights: string;
  /** Metrics of the steps taken by this process; none if the resumed run was complete, or with `val_only`. */
  steps: StepMetrics[];
  /** Metrics of the last step, or of the validation with `val_only`. */
  metrics: StepMetrics;
  /** Null if there is nothing to compare: one validation, or none and fewer than two steps. */
  progress: RunProgress | null;
  /** Problems of the run that its metrics show, the gravest first; empty if there are none. */
  problems: Finding[];
}
