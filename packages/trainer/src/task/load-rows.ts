import { loadDataset } from "@cria/rollout";
import { areFiles } from "./check-definition.js";
import { resolveFiles } from "./open-data.js";
import type { TaskDefinition, TaskRow } from "./task-definition.js";
import { separateUids, toDatasetRow } from "./task-rows.js";

export { DataLoader } from "@cria/rollout";

/**
 * Loads a task's rows for rollouts. @param name name of the rows in errors. @throws DataError or HubError, as
 * `Task.load`.
 */
export async function loadRows<Row extends object>(
  definition: TaskDefinition<Row>,
  name: string,
): Promise<TaskRow<Row>[]> {
  const rows = definition.rows as readonly object[] | string | readonly string[];
  const given = areFiles(rows) ? await loadDataset(await resolveFiles([rows].flat(), process.cwd())) : rows;
  const loaded = given.map((row, index) => toDatasetRow(row, index, definition as TaskDefinition<object>, name));
  return separateUids(loaded) as TaskRow<Row>[];
}
