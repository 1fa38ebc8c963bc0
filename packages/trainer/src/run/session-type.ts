import type { Aggregation, KlController } from "@cria/algorithms";
import type { OptimizerOptions, PolicyEngine, ValueEngine } from "@cria/core";
import type { DatasetRow, RolloutOptions } from "@cria/rollout";
import type { TrainConfig } from "../config/train-config.js";
import type { JudgedRewards } from "../rewards/judged-rewards.js";
import type { Registries } from "./registries.js";

/** A critic and how it is trained. */
export interface Critic {
  engine: ValueEngine;
  /** The learning rate is given with each update. */
  optimizer: Omit<OptimizerOptions, "learningRate">;
  /** In prompts. */
  ppo_mini_batch_size: number;
  ppo_epochs: number;
  shuffle: boolean;
  cliprangeValue: number;
  lossAggMode: Aggregation;
  /** In tokens; undefined: chosen. */
  microBatchTokens?: number;
  /** Steps before the actor's first update, in which the critic alone learns. */
  warmup: number;
}

/** Everything that a config names, loaded: model, data, tools, reward. */
export interface Session {
  config: TrainConfig;
  /** What the names in the config stand for. */
  registries: Registries;
  engine: PolicyEngine;
  /** Its logprobs without adapter are the reference: the engine itself with LoRA, else a frozen copy; null: none needed. */
  reference: PolicyEngine | null;
  /** null: the advantage estimator needs none. */
  critic: Critic | null;
  /** Of the KL penalty in the reward; an adaptive one changes from step to step. */
  klController: KlController;
  /** `rollout.reward` where models judge beside the rules; null without. */
  judgedRewards: JudgedRewards | null;
  trainRows: DatasetRow[];
  valRows: DatasetRow[];
  /** What all rollouts of the run share; sampling, step and n are added by the caller. */
  rollout: Omit<RolloutOptions, "n" | "temperature" | "topP" | "topK" | "minP" | "step">;
  /** Greedy decoding is also a rollout, at temperature 0. */
  dispose(): Promise<void>;
}
