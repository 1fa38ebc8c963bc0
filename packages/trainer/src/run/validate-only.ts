import { join } from "node:path";
import { restoreEngines } from "../checkpoints/checkpoint-store.js";
import { findResume, findRunPath } from "../checkpoints/open-run.js";
import { nameWeights } from "../checkpoints/save-weights.js";
import { makeSay, type Report } from "../events.js";
import { runValidation } from "../validation/run-validation.js";
import { readSuccess } from "../validation/validate.js";
import { listEngines } from "./run-state.js";
import type { TrainSummary } from "./train-summary.js";
import type { Training } from "./training.js";

/**
 * Validates the policy, restored from the checkpoint that training would resume from, if there is one. Leaves the run
 * unchanged, except that it writes the validation's conversations.
 * @throws ToolError when every conversation failed.
 */
export async function validateOnly(training: Training, report: Report | undefined): Promise<TrainSummary> {
  const say = makeSay(report);
  const { trainer } = training.config;
  const path = findRunPath(training.config);
  const checkpoint = await findResume(training.config, say);
  if (checkpoint) {
    await restoreEngines(checkpoint, listEngines(training));
    say(`validating ${checkpoint.path}`);
  }
  const step = checkpoint?.step ?? 0;
  const file = join(trainer.validation_data_dir ?? join(path, "validation"), `val_only-${step}.jsonl`);
  const result = await runValidation(training, { step, file, report });
  if (result) readSuccess(result, `the validation of step ${step}`);
  return {
    path,
    weights: join(path, nameWeights(training.policy.engine)),
    steps: [],
    metrics: { "training/global_step": step, ...result?.metrics },
    progress: null,
    problems: [],
  };
}
