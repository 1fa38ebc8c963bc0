import type { SamplingOptions } from "@cria/core";
import type { RolloutOptions } from "@cria/rollout";

/**
 * What a policy acts in: tools, interactions, rewards and limits of conversations. Rows, policy and sampling are passed
 * separately.
 */
export type Environment = Omit<
  RolloutOptions,
  keyof SamplingOptions | "tokenizer" | "n" | "step" | "concurrency" | "signal" | "onTrajectory"
>;
