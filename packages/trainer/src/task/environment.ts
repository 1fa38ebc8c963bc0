import type { RolloutOptions } from "@cria/rollout";

/** What conversations take place in: tools, interactions, rewards and limits. Policy and sampling are given beside it. */
export type Environment = Omit<
  RolloutOptions,
  | "tokenizer"
  | "n"
  | "temperature"
  | "topP"
  | "topK"
  | "minP"
  | "seed"
  | "step"
  | "concurrency"
  | "signal"
  | "onTrajectory"
>;
