import { dirname } from "node:path";
import { loadAgentLoops, type MultiTurnOptions } from "@cria/rollout";
import type { BaseInteraction } from "@cria/tools";
import { createInteractions, interactionEntrySchema, loadToolFormat, readConfigList } from "@cria/tools/internal";
import { resolvePath } from "../config/paths.js";
import { agentLoopEntrySchema } from "../config/sections/agent-loops-config.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Registries } from "../user-code/registries.js";

type RolloutConfig = TrainConfig["actor_rollout_ref"]["rollout"];

/** @throws ConfigError when `format` names none. */
export async function makeMultiTurnOptions(
  { multi_turn: given }: RolloutConfig,
  folder: string,
  { toolFormats }: Pick<Registries, "toolFormats">,
): Promise<MultiTurnOptions> {
  return {
    maxAssistantTurns: given.enable ? given.max_assistant_turns : 1,
    maxUserTurns: given.max_user_turns,
    maxParallelCalls: given.max_parallel_calls,
    maxToolResponseLength: given.max_tool_response_length,
    maxToolResponseChars: given.max_tool_response_chars,
    toolResponseTruncateSide: given.tool_response_truncate_side,
    format: await loadToolFormat(given.format, folder, toolFormats),
    toolTimeoutS: given.tool_timeout_s,
    tokenizationSanityCheckMode: given.tokenization_sanity_check_mode,
    useInferenceChatTemplate: given.use_inference_chat_template,
    interactionInterval: given.interaction_interval,
    interactionProb: given.interaction_prob,
    trainOnToolCalls: given.train_on_tool_calls,
  };
}

/** The config's interactions by name; null when rollouts have one turn. @throws ConfigError or ToolError */
export async function loadInteractions(
  { multi_turn }: RolloutConfig,
  folder: string,
  { interactionClasses }: Pick<Registries, "interactionClasses">,
): Promise<Map<string, BaseInteraction> | null> {
  if (!multi_turn.enable) return null;
  if (multi_turn.interaction_config_path === null) return new Map();
  const file = resolvePath(folder, multi_turn.interaction_config_path);
  const entries = await readConfigList(file, "interaction", interactionEntrySchema);
  return createInteractions(entries, dirname(file), interactionClasses);
}

/** Registers the config's own agent loops in the run's, and checks the default one. @throws ConfigError */
export async function loadConfiguredLoops(
  { agent }: RolloutConfig,
  folder: string,
  { agentLoops }: Pick<Registries, "agentLoops">,
): Promise<void> {
  if (agent.agent_loop_config_path !== null) {
    const file = resolvePath(folder, agent.agent_loop_config_path);
    const entries = await readConfigList(file, "agent_loops", agentLoopEntrySchema);
    await loadAgentLoops(entries, dirname(file), agentLoops);
  }
  agentLoops.get(agent.default_agent_loop);
}
