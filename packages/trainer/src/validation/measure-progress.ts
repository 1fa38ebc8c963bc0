import { join } from "node:path";
import { readDump } from "@cria/records";
import { findFirstValidation } from "../checkpoints/first-validation.js";
import type { StepMetrics } from "../step-metrics.js";

/** How good the policy was at a step. */
export interface Measurement {
  step: number;
  /** Mean score of the conversations that did not fail. */
  success: number;
}

/** How far a run came. */
export interface RunProgress {
  /** held_out: of validations. training: of the conversations that it learned from, sampled. */
  measured: "held_out" | "training";
  /** Of the run's first measurement, before whatever it resumed. */
  before: Measurement;
  after: Measurement;
}

/** What a run's measurements are collected in, as they come. */
export interface Measurements {
  heldOut: Measurement[];
  training: Measurement[];
}

/** First and last of the validations; of the training where there were fewer than two. Null where there is nothing to compare. */
export function compareEnds({ heldOut, training }: Measurements): RunProgress | null {
  for (const [measured, list] of [
    ["held_out", heldOut],
    ["training", training],
  ] as const)
    if (list.length > 1) return { measured, before: list[0]!, after: list.at(-1)! };
  return null;
}

/** Mean score of a training step; null when nothing of it was judged. */
export function measureStep(metrics: StepMetrics): Measurement | null {
  const success = metrics["reward/score/mean"];
  return success === undefined ? null : { step: metrics["training/global_step"] ?? 0, success };
}

/**
 * The earliest validation that lies in a folder: what a resumed run began with. Null where there is none, or none that can be
 * read: a run goes on without it.
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
