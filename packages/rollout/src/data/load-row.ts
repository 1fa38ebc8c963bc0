import { type ImageAccess, loadMessages } from "../images/load-content.js";
import type { DatasetRow } from "./dataset-row.js";

/** Loads a row's images into memory. @throws DataError that names the row. */
export async function loadRow(row: DatasetRow, access: ImageAccess = {}): Promise<DatasetRow> {
  const prompt = await loadMessages(row.prompt, { ...access, subject: `image of ${row.place}`, folder: row.folder });
  return prompt === row.prompt ? row : { ...row, prompt: [...prompt] };
}
