import type { DatasetRow } from "@cria/rollout";

/**
 * Reads a field that a config names: `data_source`, a field of a row's `extra_info`, or of the original row of a task in
 * memory.
 */
export function readField(
  { dataSource, extraInfo }: Pick<DatasetRow, "dataSource" | "extraInfo">,
  name: string,
): unknown {
  if (name === "data_source") return dataSource;
  const fields = extraInfo as Record<string, unknown>;
  return fields[name] ?? (fields.row as Record<string, unknown> | undefined)?.[name];
}
