import { type DataOptions, dataOptions, datasetClassOptions, samplerOptions } from "../options/data.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** The rows that a config names, and their order. */
export function importData(config: Pick<TrainConfig, "data">): DataOptions {
  return {
    ...trainKeys.read(config, dataOptions),
    datasetClass: trainKeys.read(config, datasetClassOptions),
    sampler: trainKeys.read(config, samplerOptions),
  };
}
