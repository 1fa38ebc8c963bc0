import { ConfigError } from "@cria/core";
import { readContextSize } from "../derived-values.js";
import { agentOptions, type EnvironmentOptions, environmentOptions, imageOptions } from "../options/environment.js";
import { multiTurnOptions } from "../options/multi-turn.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";
import { importRewards } from "./rewards.js";

/**
 * Reads the environment from a config. Without `multi_turn.enable`, conversations have one turn, no tools and no
 * interactions. The response length is the smaller of two limits.
 * @throws ConfigError if no conversation fits into the context, and as `importRewards`.
 */
export function importEnvironment(config: TrainConfig): EnvironmentOptions {
  const { rollout } = config.actor_rollout_ref;
  const oneTurn = !rollout.multi_turn.enable;
  const maxResponseLength = Math.min(rollout.response_length, config.data.max_response_length);
  checkContext(config, maxResponseLength);
  return {
    ...trainKeys.read(config, environmentOptions),
    maxResponseLength,
    hasInteractions: !oneTurn,
    ...(oneTurn ? { toolConfigPath: null, interactionConfigPath: null } : {}),
    multiTurn: importMultiTurn(config),
    images: trainKeys.read(config, imageOptions),
    agent: trainKeys.read(config, agentOptions),
    rewards: importRewards(config),
  };
}

/** Reads the order and the limits of turns. */
export function importMultiTurn(config: Pick<TrainConfig, "actor_rollout_ref">): EnvironmentOptions["multiTurn"] {
  const multiTurn = trainKeys.read(config, multiTurnOptions);
  return config.actor_rollout_ref.rollout.multi_turn.enable ? multiTurn : { ...multiTurn, maxAssistantTurns: 1 };
}

function checkContext(config: TrainConfig, responseLength: number): void {
  const { max_prompt_length } = config.data;
  const contextSize = readContextSize(config);
  if (contextSize >= max_prompt_length + responseLength) return;
  throw new ConfigError("is too small for the prompts and responses that the config allows", {
    code: "config/context-too-small",
    subject: "actor_rollout_ref.rollout.max_model_len",
    expected: `at least ${max_prompt_length + responseLength} (data.max_prompt_length ${max_prompt_length} + response_length ${responseLength})`,
    received: String(contextSize),
  });
}
