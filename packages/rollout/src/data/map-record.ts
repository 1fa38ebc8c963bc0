import { DataError } from "@cria/core";
import type { DatasetRecord } from "./read-records.js";

/**
 * Maps a file's record to a row (`data.map`), for datasets with other columns. null drops the record.
 *
 * ```ts
 * export const row = ({ question, answer }: { question: string; answer: string }) => ({
 *   data_source: "sums",
 *   prompt: [{ role: "user", content: question }],
 *   reward_model: { ground_truth: answer },
 * });
 * ```
 */
// biome-ignore lint/suspicious/noExplicitAny: users decide the record's type.
export type RowMap = (record: any, place: string) => unknown;

/**
 * Maps a record to its row; null: it is dropped. @throws DataError naming the record, when the map throws or returns
 * no row.
 */
export async function mapRecord({ value, place }: DatasetRecord, map: RowMap): Promise<unknown> {
  let row: unknown;
  try {
    row = await map(value, place);
  } catch (cause) {
    throw refuse("fails", place, (cause as Error)?.message ?? String(cause), cause);
  }
  if (row === null || (typeof row === "object" && !Array.isArray(row))) return row;
  throw refuse("gives no row", place, Array.isArray(row) ? "a list" : typeof row);
}

function refuse(what: string, place: string, received: string, cause?: unknown): DataError {
  return new DataError(`the function of data.map ${what}`, {
    code: "data/bad-map",
    subject: place,
    expected: "a row, or null to leave the record out",
    received,
    cause,
  });
}
