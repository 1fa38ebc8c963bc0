import type { Finding } from "../diagnose/finding.js";
import type { StepEvent } from "../events.js";
import { nameForRole } from "../policy/of-role.js";
import type { StepMetrics } from "../step-metrics.js";
import type { RunProgress } from "../validation/measure-progress.js";
import type { TrainSummary } from "./train-summary.js";
import type { Training } from "./training.js";

/** A finished step. */
export interface TrainStep {
  /** Number of the step, from 1, counted across resumed runs. */
  step: number;
  /** Number of steps of the whole training. */
  total: number;
  /** Mean reward of the conversations that did not fail; null if all failed. */
  reward: number | null;
  /** Mean score of the judged conversations, without step rewards and shaping; null if none was judged. */
  success: number | null;
  /** Mean score of the last validation; null before the first. */
  heldOut: number | null;
  /** Metrics by name, documented in docs/metrics.md. */
  metrics: StepMetrics;
}

/** The result of a training. */
export interface TrainResult {
  /**
   * Mean score at the first and at the last measurement: of validations, or of training if there were fewer than two
   * validations.
   */
  before: number | null;
  after: number | null;
  /** The same with their steps and kind of measurement; null if there is nothing to compare. */
  progress: RunProgress | null;
  /** The trained adapter, a GGUF that stock llama.cpp loads; null with full training, and with `lora.roles`. */
  adapter: string | null;
  /** The trained adapter of each role, with `lora.roles`; else null. */
  adapters: Readonly<Record<string, string>> | null;
  /** The trained model; null with LoRA. */
  model: string | null;
  /** The run folder. */
  folder: string;
  /** Metrics of the last step, or of the validation with `val_only`. */
  metrics: StepMetrics;
  /** Problems of the run, the gravest first; empty if there are none. */
  problems: Finding[];
  /** Number of held-out rows used in validation. */
  heldOutRows: number;
}

export function describeStep({ step, total, metrics, heldOut }: StepEvent): TrainStep {
  return {
    step,
    total,
    reward: metrics["critic/score/mean"] ?? null,
    success: metrics["reward/score/mean"] ?? null,
    heldOut,
    metrics,
  };
}

export function describeResult(
  { policy, valRows }: Pick<Training, "policy" | "valRows">,
  { path, weights, metrics, progress, problems }: TrainSummary,
): TrainResult {
  const isLora = policy.engine.info.trainable === "lora";
  return {
    before: progress?.before.success ?? null,
    after: progress?.after.success ?? null,
    progress,
    adapter: isLora && !policy.roles ? weights : null,
    adapters: policy.roles && Object.fromEntries([...policy.roles.keys()].map((r) => [r, nameForRole(weights, r)])),
    model: isLora ? null : weights,
    folder: path,
    metrics,
    problems,
    heldOutRows: valRows.length,
  };
}
