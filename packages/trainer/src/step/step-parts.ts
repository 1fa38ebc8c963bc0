import type { EstimatorState, KlController } from "@cria/algorithms";
import type { DatasetRow } from "@cria/rollout";
import type { Coordination } from "../cluster/training-bus.js";
import type { Settings } from "../config/import/settings.js";
import type { Demonstrations, LossWeights } from "../policy/mix-mini-batch.js";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "../task/environment.js";
import type { Registries } from "../user-code/registries.js";
import type { Critic } from "./critic.js";
import type { Teachers } from "./teachers.js";

/** The parts of a training step; all are opened from the same settings. */
export interface StepParts {
  settings: Settings;
  /** Values of the names in the settings. */
  registries: Registries;
  policy: Policy;
  environment: Environment;
  /** The critic; null: the advantage estimator needs none. */
  critic: Critic | null;
  /** The teachers; null: there are none. */
  teachers: Teachers | null;
  /** Conversations that every update also learns to repeat; null: none. */
  demonstrations: Demonstrations | null;
  /** Weights of rows in the terms of the loss, by index of row; null: all are 1. */
  lossWeights: ReadonlyMap<number, LossWeights> | null;
  /** Controls the coefficient of the KL penalty in the reward; an adaptive one changes from step to step. */
  klController: KlController;
  /** Numbers that the advantage estimator keeps from step to step. */
  estimatorState: { current: EstimatorState };
  /** Training rows; their number and the settings determine the number of steps. */
  trainRows: readonly DatasetRow[];
  /** Distributes work over other machines; null: all work is done in this process. */
  coordination: Coordination | null;
  signal?: AbortSignal;
}
