import type { Algorithms } from "@cria/algorithms";
import type { TrainConfig } from "../config/train-config.js";
import type { Report } from "../events.js";
import type { Environment } from "../task/environment.js";
import { openEnvironment } from "../task/open-environment.js";
import type { Task } from "../task/task.js";
import { describeTask, type RawSection, registerAgent } from "../task/task-config.js";
import type { TaskDefinition } from "../task/task-definition.js";
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
  if (!task) return openEnvironment(config, folder, { registries, rows: [], judges: false, report });
  const { definition } = task;
  registerAgent(registries, definition);
  const options = { registries, rows: [], task: definition, judges: false, report };
  return openEnvironment(nameOwnFiles(config, definition), folder, options);
}

/** Files that a task names lie where this process has them. */
function nameOwnFiles(config: TrainConfig, definition: TaskDefinition<object>): TrainConfig {
  const { rollout } = config.actor_rollout_ref;
  const own = (describeTask(definition).actor_rollout_ref as { rollout: { multi_turn: RawSection } }).rollout;
  const { tool_config_path, interaction_config_path } = own.multi_turn as Partial<Record<string, string>>;
  const multi_turn = {
    ...rollout.multi_turn,
    ...(tool_config_path === undefined ? {} : { tool_config_path }),
    ...(interaction_config_path === undefined ? {} : { interaction_config_path }),
  };
  return { ...config, actor_rollout_ref: { ...config.actor_rollout_ref, rollout: { ...rollout, multi_turn } } };
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
