import { join } from "node:path";
import { readDump } from "@cria/records";
import { findFirstValidation } from "../checkpoints/first-validation.js";
import type { StepMetrics } from "../step-metrics.js";

/** Success of the policy at a step. */
export interface Measurement {
  step: number;
  /** Mean score of the conversations that did not fail. */
  success: number;
}

/** Progress of a run. */
export interface RunProgress {
  /** held_out: success of validations. training: success of the sampled conversations that it trained on. */
  measured: "held_out" | "training";
  /** The run's first measurement, also if that was before a resume. */
  before: Measurement;
  after: Measurement;
}

/** Measurements of a run, collected as they come. */
export interface Measurements {
  heldOut: Measurement[];
  training: Measurement[];
}

/**
 * First and last measurement: of validations, or of the training if there were fewer than two validations. Null if
 * there is nothing to compare.
 */
export function compareEnds({ heldOut, training }: Measurements): RunProgress | null {
  for (const [measured, list] of [
    ["held_out", heldOut],
    ["training", training],
  ] as const)
    if (list.length > 1) return { measured, before: list[0]!, after: list.at(-1)! };
  return null;
}

/** Mean score of a training step; null if none of its conversations was judged. */
export function measureStep(metrics: StepMetrics): Measurement | null {
  const success = metrics["reward/score/mean"];
  return success === undefined ? null : { step: metrics["training/global_step"] ?? 0, success };
}

/**
 * Reads the earliest validation in a folder, with which a resumed run began. Null if it is missing or unreadable:
 * the run continues without it.
 */
export async function readFirstValidation(folder: string): Promise<Measurement | null> {
  const name = findFirstValidation(folder);
  if (name === null) return null;
  const step = Number.parseInt(name, 10);
  const scores: number[] = [];
  try {
    for await (const { score } of readDump(join(folder, name))) if (score !== null) scores.push(score);
  } catch {
    return null;
  }
  return scores.length > 0 ? { step, success: scores.reduce((a, b) => a + b, 0) / scores.length } : null;
}
