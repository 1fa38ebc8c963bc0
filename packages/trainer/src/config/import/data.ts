import { type DataOptions, dataOptions, datasetClassOptions, samplerOptions } from "../options/data.js";
import { demonstrationOptions } from "../options/demonstrations.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** Reads the rows and their order from a config. */
export function importData(config: Pick<TrainConfig, "data">): DataOptions {
  return {
    ...trainKeys.read(config, dataOptions),
    datasetClass: trainKeys.read(config, datasetClassOptions),
    sampler: trainKeys.read(config, samplerOptions),
    demonstrations: trainKeys.read(config, demonstrationOptions),
  };
}
