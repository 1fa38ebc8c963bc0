import { countConversations } from "@cria/rollout/internal";
import type { Settings } from "../config/import/settings.js";
import type { TrainConfig } from "../config/train-config.js";
import { type Report, WorkReporter } from "../events.js";
import type { LiveTracker } from "../live/live-tracker.js";
import { dumpTrajectories, listShown, saveDump } from "./dump-trajectories.js";
import { type Validation, type ValidationParts, validate } from "./validate.js";

export interface RunValidationOptions {
  step: number;
  /** File for the conversations. */
  file: string;
  report?: Report;
  live?: LiveTracker | null;
}

/** Validates on `data.val_files` with `val_kwargs`; null if there are no such rows. */
export async function runValidation(
  parts: ValidationParts & { config: Pick<TrainConfig, "trainer">; settings: Pick<Settings, "validation"> },
  { step, file, report, live }: RunValidationOptions,
): Promise<Validation | null> {
  const { policy, environment, valRows } = parts;
  if (valRows.length === 0) return null;
  const { validation } = parts.settings;
  const reporter = new WorkReporter(report, "validate");
  const total = countConversations(valRows, validation.n);
  reporter.update(0, total);
  live?.enter("validation");
  let done = 0;
  const result = await validate(parts, {
    ...validation,
    step,
    onTrajectory: (trajectory) => {
      live?.onTrajectory(trajectory);
      reporter.update(++done, total);
    },
    onState: live?.onValidation,
  });
  const { success, failed, trajectories } = result;
  const { length: conversations } = trajectories;
  report?.({
    type: "validated",
    step,
    success,
    loss: null,
    failed,
    conversations,
    temperature: validation.temperature,
  });
  reporter.end();
  const times = parts.config.trainer.rollout_data_detail === "full";
  const lines = dumpTrajectories(policy.engine, environment, trajectories, { step, rows: valRows, times });
  await saveDump(file, lines, listShown(trajectories));
  return result;
}
