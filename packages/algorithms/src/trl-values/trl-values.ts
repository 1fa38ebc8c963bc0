import { readStored } from "../stored-values/stored-values.js";

/** Settings of TRL's GRPOConfig, under its names; omitted ones have TRL's defaults. */
export interface TrlSettings {
  loss_type?: string;
  importance_sampling_level?: "token" | "sequence";
  num_iterations?: number;
  epsilon?: number;
  epsilon_high?: number;
  delta?: number;
  max_completion_length?: number;
  beta?: number;
  use_bias_correction_kl?: boolean;
  entropy_coef?: number;
  sapo_temperature_pos?: number;
  sapo_temperature_neg?: number;
  use_vllm?: boolean;
  vllm_importance_sampling_mode?: string;
  vllm_importance_sampling_clip_min?: number;
  vllm_importance_sampling_clip_max?: number;
  scale_rewards?: "group" | "none" | "batch";
  multi_objective_aggregation?: string;
  reward_weights?: number[];
}

export interface TrlLossCase {
  /** Name of an entry of `tokens`. */
  tokens: string;
  settings: TrlSettings;
  /** Number of micro-batches with equally many rows, whose losses were added up. */
  micro: number;
  /** Name of an intended difference; null: there is none. */
  deviates: string | null;
  /** One per row. */
  advantages: number[];
  /** Weights on tokens, by TRL's correction of vLLM's logprobs; null: none. */
  is_weights: number[] | null;
  loss: number;
  d_logprobs: number[];
  d_entropy: number[];
  metrics: Record<string, number>;
}

export interface TrlValues {
  /** The releases that computed the values. */
  trl: string;
  torch: string;
  loss_types: string[];
  /** Settings that TRL reads between generation and loss. */
  settings: string[];
  /** `rewards` of each reward function; groups of `group` rows. */
  advantages: { name: string; settings: TrlSettings; group: number; rewards: number[][]; advantages: number[] }[];
  /** Only the tokens that the tool mask keeps. */
  tokens: Record<
    string,
    {
      lengths: number[];
      logprobs: number[];
      old_logprobs: number[];
      ref_logprobs: number[];
      sampling_logprobs: number[];
      entropy_values: number[];
    }
  >;
  losses: TrlLossCase[];
}

/** Output of `fixtures/make_from_trl.py`: values and gradients by TRL's own trainer. */
export const trlValues = readStored<TrlValues>("trl.json.gz");
