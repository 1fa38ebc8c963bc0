import type { SamplingOptions } from "@cria/core";
import type { RolloutOptions } from "@cria/rollout";

/**
 * The environment in which a policy acts: tools, interactions, rewards and limits of conversations. Rows, policy and
 * sampling are passed separately.
 */
export type Environment = Omit<
  RolloutOptions,
  keyof SamplingOptions | "tokenizer" | "n" | "step" | "concurrency" | "signal" | "onTrajectory"
>;
