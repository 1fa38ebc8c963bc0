import {
  type AlgorithmOptions,
  algorithmOptions,
  filterOptions,
  filtrationOptions,
  klControllerOptions,
} from "../options/algorithm.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** Advantage estimation in a config. A switch that is off leaves the keys beside it without effect. */
export function importAlgorithm(config: TrainConfig): AlgorithmOptions {
  const { filter_groups, use_pf_ppo } = config.algorithm;
  return {
    ...trainKeys.read(config, algorithmOptions),
    klController: trainKeys.read(config, klControllerOptions),
    filterGroups: filter_groups.enable ? trainKeys.read(config, filterOptions) : null,
    filtration: use_pf_ppo ? trainKeys.read(config, filtrationOptions) : null,
  };
}
