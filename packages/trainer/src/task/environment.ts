import type { SamplingOptions } from "@cria/core";
import type { RolloutOptions } from "@cria/rollout";

/** What conversations take place in: tools, interactions, rewards and limits. Policy and sampling are given beside it. */
export type Environment = Omit<
  RolloutOptions,
  keyof SamplingOptions | "tokenizer" | "n" | "step" | "concurrency" | "signal" | "onTrajectory"
>;
