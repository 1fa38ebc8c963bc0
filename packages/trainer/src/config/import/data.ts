import { type DataOptions, dataOptions, datasetClassOptions } from "../options/data.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** The rows that a config names, and their order. */
export function importData(config: Pick<TrainConfig, "data">): DataOptions {
  return { ...trainKeys.read(config, dataOptions), datasetClass: trainKeys.read(config, datasetClassOptions) };
}
