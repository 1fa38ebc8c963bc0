import { colors as pc } from "../terminal/colors.js";
import { Progress } from "../terminal/progress.js";
import { dumpTrajectories } from "./dump-trajectories.js";
import { writeLines } from "./run-folder.js";
import type { Session } from "./session-type.js";
import { type Validation, validate } from "./validate.js";

export interface RunValidationOptions {
  step: number;
  /** File for the conversations. */
  file: string;
  silent: boolean;
}

/** Validates on `data.val_files` by `val_kwargs`, with a progress bar; null when there are no such rows. */
export async function runValidation(
  session: Session,
  { step, file, silent }: RunValidationOptions,
): Promise<Validation | null> {
  if (session.valRows.length === 0) return null;
  const { val_kwargs } = session.config.actor_rollout_ref.rollout;
  const progress = new Progress({ label: "validate", total: session.valRows.length * val_kwargs.n, silent });
  let done = 0;
  const result = await validate(session, {
    temperature: val_kwargs.do_sample ? val_kwargs.temperature : 0,
    topP: val_kwargs.top_p,
    topK: Math.max(0, val_kwargs.top_k),
    minP: val_kwargs.min_p,
    n: val_kwargs.n,
    step,
    onTrajectory: () => progress.update(++done),
  });
  const failed = result.failed > 0 ? `, ${result.failed} of ${result.trajectories.length} conversations failed` : "";
  progress.finish(`${pc.green(`success ${result.success?.toFixed(3) ?? "unknown"}`)}${pc.red(failed)}`);
  await writeLines(file, dumpTrajectories(session, result.trajectories, { step, rows: session.valRows }));
  return result;
}
