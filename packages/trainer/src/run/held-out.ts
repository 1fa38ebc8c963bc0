import type { DatasetRow } from "@cria/rollout";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { areFiles } from "../task/check-definition.js";
import { Task } from "../task/task.js";
import type { TrainOptions } from "./train-options.js";

/**
 * Loads held-out rows that the task converts or that are in memory; undefined: the config's rows are used as they are.
 */
export async function loadHeldOut(
  { task, validation }: TrainOptions,
  { data }: TrainConfig,
  folder: string,
): Promise<DatasetRow[] | undefined> {
  const name = "validation.rows";
  if (validation && !areFiles(validation.rows))
    return (task?.withRows(validation.rows, name) ?? new Task({ rows: validation.rows }, name)).load();
  if (!task || !data.val_files) return undefined;
  return task
    .withRows(
      data.val_files.map((file) => resolvePath(folder, file)),
      name,
    )
    .load();
}
