// Functions of the interface that load their module when they are first called, so that a program which imports Cria starts at once.

import type { DatasetRow, loadDataset as load } from "@cria/rollout";
import type { DemoOptions, DemoSummary } from "./demo/run-demo.js";

/**
 * Reads rows from Parquet, JSONL and JSON files, in order.
 * @throws DataError when a file is missing or damaged, or a row is malformed; ConfigError for an unknown or wrong option.
 */
export async function loadDataset(...given: Parameters<typeof load>): Promise<DatasetRow[]> {
  return (await import("@cria/rollout")).loadDataset(...given);
}

/** Trains the embedded policy to use its calculator, and shows held-out success before and after. */
export async function runDemo(options: DemoOptions): Promise<DemoSummary> {
  return (await import("./demo/run-demo.js")).runDemo(options);
}
