import type { Algorithms } from "@cria/algorithms";
import { importEnvironment } from "../config/import/environment.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Report } from "../events.js";
import type { Environment } from "../task/environment.js";
import { openEnvironment } from "../task/open-environment.js";
import type { Task } from "../task/task.js";
import { describeEnvironment, registerAgent } from "../task/task-config.js";
import { loadAlgorithms } from "../user-code/load-algorithms.js";
import { providePackages } from "../user-code/provide-packages.js";
import { openRegistries } from "../user-code/registries.js";

/** Conversations of another process's training, held here. */
export interface OpenedConversations {
  /** Nobody judges in it. */
  environment: Environment;
  /** Ends tools and interactions. */
  dispose(): Promise<void>;
}

/**
 * Opens what conversations of a training take place in: tools, interactions, agent loops. Whoever asked for them judges them.
 * @param folder where relative paths of the config start.
 * @throws ConfigError or ToolError; nothing stays open then.
 */
export function openConversations(
  config: TrainConfig,
  folder: string,
  { task, report }: { task?: Task<object>; report?: Report } = {},
): Promise<OpenedConversations> {
  providePackages();
  const registries = openRegistries();
  const options = importEnvironment(config);
  if (!task) return openEnvironment(options, folder, { registries, rows: [], judges: false, report });
  const { definition } = task;
  registerAgent(registries, definition);
  // Files that a task names lie where this process has them.
  const { toolConfigPath = options.toolConfigPath, interactionConfigPath = options.interactionConfigPath } =
    describeEnvironment(definition);
  const own = { ...options, toolConfigPath, interactionConfigPath };
  return openEnvironment(own, folder, { registries, rows: [], task: definition, judges: false, report });
}

/**
 * The losses that gradients of a training are computed with: what is built in or registered, and what its config names by path.
 * @throws ConfigError when one cannot be loaded, or nothing has its name.
 */
export async function openLosses(config: TrainConfig, folder: string): Promise<Algorithms> {
  providePackages();
  const registries = openRegistries();
  // Advantages are estimated by whoever coordinates.
  const algorithm = { ...config.algorithm, adv_estimator: "grpo", kl_penalty: "kl" };
  await loadAlgorithms({ ...config, algorithm }, folder, registries);
  const { policy_loss, loss_agg_mode, kl_loss_type } = config.actor_rollout_ref.actor;
  registries.policyLosses.get(policy_loss.loss_mode);
  registries.aggregations.get(loss_agg_mode);
  registries.klEstimates.get(kl_loss_type);
  return registries;
}
