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

/** The environment for conversations of another process's training. */
export interface OpenedConversations {
  /** An environment without judges. */
  environment: Environment;
  /** Closes tools and interactions. */
  dispose(): Promise<void>;
}

/**
 * Opens the environment of a training's conversations: tools, interactions, agent loops. The requesting process
 * judges them.
 * @param folder base of the config's relative paths.
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
  // Files that a task names are at this process's own paths.
  const { toolConfigPath = options.toolConfigPath, interactionConfigPath = options.interactionConfigPath } =
    describeEnvironment(definition);
  const own = { ...options, toolConfigPath, interactionConfigPath };
  return openEnvironment(own, folder, { registries, rows: [], task: definition, judges: false, report });
}

/**
 * Opens the losses for a training's gradients: built-in and registered ones, and those that its config names by
 * path.
 * @throws ConfigError when one cannot be loaded, or a name is unknown.
 */
export async function openLosses(config: TrainConfig, folder: string): Promise<Algorithms> {
  providePackages();
  const registries = openRegistries();
  // Only the coordinator estimates advantages.
  const algorithm = { ...config.algorithm, adv_estimator: "grpo", kl_penalty: "kl" };
  await loadAlgorithms({ ...config, algorithm }, folder, registries);
  const { policy_loss, loss_agg_mode, kl_loss_type, loss_terms } = config.actor_rollout_ref.actor;
  registries.policyLosses.get(policy_loss.loss_mode);
  registries.aggregations.get(loss_agg_mode);
  registries.klEstimates.get(kl_loss_type);
  for (const { term } of Object.values(loss_terms)) registries.lossTerms.get(term);
  return registries;
}
