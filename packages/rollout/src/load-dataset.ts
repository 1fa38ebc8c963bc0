import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { DataError } from "@cria/core";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { type DatasetRow, parseRow } from "./dataset-row.js";

export interface LoadDatasetOptions {
  /** Column of the messages; default "prompt". */
  promptKey?: string;
  /** Keep the first rows only; -1 (default) keeps all. */
  maxSamples?: number;
}

/**
 * Reads rows from Parquet, JSONL and JSON files, in order.
 * @throws DataError when a file is missing or damaged, or a row is malformed.
 */
export async function loadDataset(files: readonly string[], options: LoadDatasetOptions = {}): Promise<DatasetRow[]> {
  const rows: DatasetRow[] = [];
  for (const file of files) {
    for (const { value, place } of await readRecords(file))
      rows.push(parseRow(value, rows.length, place, options.promptKey));
  }
  const limit = options.maxSamples ?? -1;
  const kept = limit >= 0 ? rows.slice(0, limit) : rows;
  if (kept.length === 0) {
    throw new DataError("holds no rows", {
      code: "data/empty",
      subject: files.join(", ") || "dataset",
      expected: "at least one row",
    });
  }
  return kept;
}

/** The raw records of one file, each with its place for error messages. */
export async function readRecords(file: string): Promise<{ value: unknown; place: string }[]> {
  const kind = extname(file).toLowerCase();
  try {
    if (kind === ".parquet") {
      const records = await parquetReadObjects({ file: await asyncBufferFromFile(file) });
      return records.map((value, i) => ({ value, place: `${file}, row ${i + 1}` }));
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

function parseLines(text: string, file: string): { value: unknown; place: string }[] {
  const records: { value: unknown; place: string }[] = [];
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
