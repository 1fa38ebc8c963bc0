import type { Finding } from "../diagnose/finding.js";
import type { StepMetrics } from "../step-metrics.js";
import type { RunProgress } from "../validation/measure-progress.js";

/** How a run ended. */
export interface TrainSummary {
  /** The run folder. */
  path: string;
  /** File of the trained weights; not there after `val_only`. */
  weights: string;
  /** Metrics of the steps taken here; none when the resumed run was complete, or with `val_only`. */
  steps: StepMetrics[];
  /** Of the last step, or of the validation with `val_only`. */
  metrics: StepMetrics;
  /** Null where there is nothing to compare: one validation, or none and fewer than two steps. */
  progress: RunProgress | null;
  /** What is wrong with the run, as far as its metrics tell; the gravest first. Empty when nothing is. */
  problems: Finding[];
}
