import type { SamplingOptions } from "@cria/core";
import type { TreeOptions } from "@cria/rollout";
import { countSamples } from "../derived-values.js";
import { samplingOptions, treeOptions, validationOptions } from "../options/sampling.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** Conversations per prompt, and the sampler's parameters. */
export interface SamplingSettings extends Required<Omit<SamplingOptions, "seed">> {
  n: number;
  /** Null: each conversation begins at the prompt. */
  tree: TreeOptions | null;
}

/** Sampling in training. verl's top_k of -1 is 0 here: all tokens. */
export function importSampling(config: Pick<TrainConfig, "actor_rollout_ref">): SamplingSettings {
  const given = config.actor_rollout_ref.rollout;
  const tree = trainKeys.read(config, treeOptions);
  return {
    ...trainKeys.read(config, samplingOptions),
    topK: Math.max(0, given.top_k),
    n: countSamples(given),
    tree: tree.expansions > 0 ? tree : null,
  };
}

/** Sampling in validation: greedy, unless `do_sample` says otherwise. */
export function importValidation(config: Pick<TrainConfig, "actor_rollout_ref">): SamplingSettings {
  const { do_sample, top_k } = config.actor_rollout_ref.rollout.val_kwargs;
  const options = trainKeys.read(config, validationOptions);
  return {
    ...options,
    topK: Math.max(0, top_k),
    temperature: do_sample ? options.temperature : 0,
    tree: null,
  };
}
