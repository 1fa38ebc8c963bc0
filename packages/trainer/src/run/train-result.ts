import type { Finding } from "../diagnose/finding.js";
import type { StepMetrics } from "../step-metrics.js";
import type { RunProgress } from "../validation/measure-progress.js";

/** A step that is done. */
export interface TrainStep {
  /** From 1, over resumed runs. */
  step: number;
  /** Steps of the whole training. */
  total: number;
  /** Mean reward of the conversations that did not fail; null when all did. */
  reward: number | null;
  /** Mean score of them, without step rewards and shaping; null when none was judged. */
  success: number | null;
  /** Success of the last validation; null before the first. */
  heldOut: number | null;
  /** By name; docs/metrics.md says what each means. */
  metrics: StepMetrics;
}

/** How a training ended. */
export interface TrainResult {
  /** Success at its first measurement and at its last: of validations, or of training where there were fewer than two. */
  before: number | null;
  after: number | null;
  /** The same with their steps, and what was measured; null where there is nothing to compare. */
  progress: RunProgress | null;
  /** The trained adapter, a GGUF that stock llama.cpp loads; null with full training. */
  adapter: string | null;
  /** The trained model; null with LoRA. */
  model: string | null;
  /** The run folder. */
  folder: string;
  /** Of the last step, or of the validation with `val_only`. */
  metrics: StepMetrics;
  /** What is wrong with the run; the gravest first. Empty when nothing is. */
  problems: Finding[];
  /** Held-out rows that were validated on. */
  heldOutRows: number;
}
