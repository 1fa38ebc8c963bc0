import { dirname, resolve } from "node:path";
import { DataError, hashSeed } from "@cria/core";
import { type ChecksOf, checkOptions, type OptionCheck, optionChecks, shuffleIndices } from "@cria/core/internal";
import { type DatasetRow, type ParseRowOptions, parseRow } from "./dataset-row.js";
import { mapRecord, type RowMap } from "./map-record.js";
import { type DatasetClass, RolloutDataset } from "./rollout-dataset.js";

export interface LoadDatasetOptions extends Omit<ParseRowOptions, "position"> {
  /** Maximum number of rows; -1 (default) keeps all. */
  maxSamples?: number;
  /** Selection of the rows: null (default) takes the first; a number seeds a random choice, kept in file order. */
  sampleSeed?: number | null;
  /** Default: reads the files as they are. */
  datasetClass?: DatasetClass;
  /** Maps each record to a row; default: the records are rows. */
  map?: RowMap;
  /** Config passed to a user's dataset class. */
  config?: Readonly<Record<string, unknown>>;
}

const { any } = optionChecks;
/** An empty one names no column. */
const column: OptionCheck = [(value) => typeof value === "string", "the name of a column"];

const datasetChecks: ChecksOf<Required<LoadDatasetOptions>> = {
  promptKey: column,
  rewardFnKey: column,
  imageKey: column,
  videoKey: column,
  folder: optionChecks.text,
  needToolsKwargs: optionChecks.flag,
  maxSamples: optionChecks.whole,
  sampleSeed: any,
  datasetClass: any,
  map: any,
  config: any,
};

/**
 * Reads rows from Parquet, JSONL and JSON files, in order.
 * @throws DataError when a file is missing or damaged, or a row is malformed; ConfigError for an unknown or wrong option.
 */
export async function loadDataset(files: readonly string[], options: LoadDatasetOptions = {}): Promise<DatasetRow[]> {
  checkOptions("loadDataset", options, datasetChecks);
  const dataset = new (options.datasetClass ?? RolloutDataset)(files, options.config);
  const rows: DatasetRow[] = [];
  for (const [file, records] of (await dataset.load()).entries()) {
    // A user's dataset may read files of its own.
    const folder = options.folder ?? (files[file] === undefined ? process.cwd() : dirname(resolve(files[file])));
    for (const [i, record] of records.entries()) {
      const value = options.map ? await mapRecord(record, options.map) : record.value;
      if (options.map && value === null) continue;
      rows.push(parseRow(value, rows.length, record.place, { ...options, folder, position: `${file}:${i}` }));
    }
  }
  const kept = takeSamples(rows, options.maxSamples ?? -1, options.sampleSeed ?? null);
  if (kept.length === 0) {
    throw new DataError("holds no rows", {
      code: "data/empty",
      subject: files.join(", ") || "dataset",
      expected: "at least one row",
    });
  }
  return kept;
}

function takeSamples(rows: readonly DatasetRow[], limit: number, seed: number | null): DatasetRow[] {
  if (limit < 0 || limit >= rows.length) return [...rows];
  if (seed === null) return rows.slice(0, limit);
  const picked = shuffleIndices(rows.length, hashSeed(seed, "samples")).slice(0, limit).sort();
  return [...picked].map((i) => rows[i]!);
}
