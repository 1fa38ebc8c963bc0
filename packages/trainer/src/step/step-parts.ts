import type { KlController } from "@cria/algorithms";
import type { DatasetRow } from "@cria/rollout";
import type { Coordination } from "../cluster/training-bus.js";
import type { Settings } from "../config/import/settings.js";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "../task/environment.js";
import type { Registries } from "../user-code/registries.js";
import type { Critic } from "./critic.js";
import type { Teachers } from "./teachers.js";

/** What a training step needs; all of it is opened from the same settings. */
export interface StepParts {
  settings: Settings;
  /** Values of the names in the settings. */
  registries: Registries;
  policy: Policy;
  environment: Environment;
  /** null: the advantage estimator needs none. */
  critic: Critic | null;
  /** null: no teacher. */
  teachers: Teachers | null;
  /** Of the KL penalty in the reward; an adaptive one changes from step to step. */
  klController: KlController;
  /** Rows to train on: with the settings they say how many steps there are. */
  trainRows: readonly DatasetRow[];
  /** Hands out what can be done elsewhere; null: all is done in this process. */
  coordination: Coordination | null;
  signal?: AbortSignal;
}
