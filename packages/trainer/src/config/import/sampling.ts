import type { SamplingOptions } from "@cria/core";
import type { TreeOptions } from "@cria/rollout";
import { countSamples } from "../derived-values.js";
import { samplingOptions, treeOptions } from "../options/sampling.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** Conversations per prompt, and the sampler's parameters. */
export interface SamplingSettings extends Required<Omit<SamplingOptions, "seed">> {
  n: number;
  /** Null: each conversation begins at the prompt. */
  tree: TreeOptions | null;
}

const rollout = "actor_rollout_ref.rollout";

/** Sampling in training. verl's top_k of -1 is 0 here: all tokens. */
export function importSampling(config: Pick<TrainConfig, "actor_rollout_ref">): SamplingSettings {
  const given = config.actor_rollout_ref.rollout;
  const { temperature, top_k } = given;
  const tree = trainKeys.read(config, treeOptions);
  return {
    ...trainKeys.read(config, samplingOptions),
    topK: Math.max(0, top_k),
    temperature,
    n: countSamples(given),
    tree: tree.expansions > 0 ? tree : null,
  };
}

/** Sampling in validation: greedy, unless `do_sample` says otherwise. */
export function importValidation(config: Pick<TrainConfig, "actor_rollout_ref">): SamplingSettings {
  const { n, do_sample, temperature, top_k } = config.actor_rollout_ref.rollout.val_kwargs;
  return {
    ...trainKeys.read(config, samplingOptions, `${rollout}.val_kwargs.`),
    topK: Math.max(0, top_k),
    temperature: do_sample ? temperature : 0,
    n,
    tree: null,
  };
}
