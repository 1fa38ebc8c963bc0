import {
  type AlgorithmOptions,
  algorithmOptions,
  filterOptions,
  filtrationOptions,
  klControllerOptions,
  replayOptions,
  turnValueOptions,
} from "../options/algorithm.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** Reads the options of advantage estimation from a config. Keys beside a switch that is off have no effect. */
export function importAlgorithm(config: TrainConfig): AlgorithmOptions {
  const { filter_groups, use_pf_ppo, replay } = config.algorithm;
  const options = trainKeys.read(config, algorithmOptions);
  const { advantages, gigpoMode, normalizeByStd } = options;
  return {
    ...options,
    // gigpo has a key of its own, as in verl-agent.
    normalizeByStd: advantages === "gigpo" ? gigpoMode === "mean_std_norm" : normalizeByStd,
    klController: trainKeys.read(config, klControllerOptions),
    filterGroups: filter_groups.enable ? trainKeys.read(config, filterOptions) : null,
    replay: replay.share > 0 ? trainKeys.read(config, replayOptions) : null,
    turnValues: trainKeys.read(config, turnValueOptions),
    filtration: use_pf_ppo ? trainKeys.read(config, filtrationOptions) : null,
  };
}
