import type { Aggregation, KlController } from "@cria/algorithms";
import type { OptimizerOptions, ValueEngine } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import type { TrainConfig } from "../config/train-config.js";
import type { Policy } from "../policy/policy.js";
import type { JudgedRewards } from "../rewards/judged-rewards.js";
import type { Environment } from "../task/environment.js";
import type { Registries } from "../task/registries.js";

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

/** What a training step needs; all of it is opened from one config. */
export interface StepParts {
  config: TrainConfig;
  /** What the names in the config stand for. */
  registries: Registries;
  policy: Policy;
  environment: Environment;
  /** null: the advantage estimator needs none. */
  critic: Critic | null;
  /** Of the KL penalty in the reward; an adaptive one changes from step to step. */
  klController: KlController;
  /** Rows to train on: with the config they say how many steps there are. */
  trainRows: readonly DatasetRow[];
  signal?: AbortSignal;
}

/** Everything that a config names, loaded: model, data, tools, reward. Who opens it hands its parts on. */
export interface Session extends StepParts {
  trainRows: DatasetRow[];
  valRows: DatasetRow[];
  /** `environment.reward` where models judge beside the rules; null without. */
  judgedRewards: JudgedRewards | null;
  dispose(): Promise<void>;
}
