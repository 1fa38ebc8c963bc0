import type { SamplingOptions } from "@cria/core";
import type { RolloutOptions } from "@cria/rollout";

/**
 * Everything around a conversation: tools, interactions, rewards and limits. Policy and sampling are passed
 * separately.
 */
export type Environment = Omit<
  RolloutOptions,
  keyof SamplingOptions | "tokenizer" | "n" | "step" | "concurrency" | "signal" | "onTrajectory"
>;
