import { DataError } from "@cria/core";

/** @throws DataError that names the column. */
export function readColumn(columns: Record<string, Float32Array>, name: string): Float32Array {
  const column = columns[name];
  if (column) return column;
  throw new DataError("is missing from the batch", {
    code: "data/missing-column",
    subject: `column ${name}`,
    expected: "one value for each token",
    received: Object.keys(columns).join(", ") || "no columns",
  });
}
