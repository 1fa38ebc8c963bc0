import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { DataError } from "@cria/core";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

/** One row as its file has it. */
export interface DatasetRecord {
  value: unknown;
  /** File and line or row, for error messages. */
  place: string;
}

/**
 * The raw records of one Parquet, JSONL or JSON file. 64-bit integers of Parquet become numbers where numbers hold them
 * exactly; bytes stay bytes.
 * @throws DataError when the file is missing, damaged or of another kind.
 */
export async function readRecords(file: string): Promise<DatasetRecord[]> {
  const kind = extname(file).toLowerCase();
  try {
    if (kind === ".parquet") {
      const records = await parquetReadObjects({ file: await asyncBufferFromFile(file), compressors, utf8: false });
      return records.map((value, i) => ({ value: simplify(value), place: `${file}, row ${i + 1}` }));
    }
    if (kind === ".jsonl") return parseLines(await readFile(file, "utf8"), file);
    if (kind === ".json") {
      const value: unknown = JSON.parse(await readFile(file, "utf8"));
      if (!Array.isArray(value)) throw new Error("is not an array of rows");
      return value.map((entry, i) => ({ value: entry, place: `${file}, row ${i + 1}` }));
    }
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    throw new DataError("cannot be read", {
      code: "data/unreadable",
      subject: file,
      expected: "a readable Parquet, JSONL or JSON file",
      received: (cause as Error).message,
      cause,
    });
  }
  throw new DataError("has an unknown format", {
    code: "data/unknown-format",
    subject: file,
    expected: ".parquet, .jsonl or .json",
    received: kind || "no extension",
  });
}

function parseLines(text: string, file: string): DatasetRecord[] {
  const records: DatasetRecord[] = [];
  text.split("\n").forEach((line, i) => {
    if (line.trim() === "") return;
    const place = `${file}, line ${i + 1}`;
    try {
      records.push({ value: JSON.parse(line), place });
    } catch (cause) {
      throw new DataError("is not JSON", {
        code: "data/bad-row",
        subject: place,
        expected: "one JSON object",
        received: line.slice(0, 120),
        cause,
      });
    }
  });
  return records;
}

/** Numbers for 64-bit integers; null for null structs, of which the reader says undefined. */
function simplify(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(simplify);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, simplify(entry)]));
}
