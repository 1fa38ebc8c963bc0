import { dirname } from "node:path";
import { loadAgentLoops, type MultiTurnOptions } from "@cria/rollout";
import type { BaseInteraction } from "@cria/tools";
import { createInteractions, interactionEntrySchema, loadToolFormat, readConfigList } from "@cria/tools/internal";
import type { EnvironmentOptions } from "../config/options/environment.js";
import { resolvePath } from "../config/paths.js";
import { agentLoopEntrySchema } from "../config/sections/agent-loops-config.js";
import type { Registries } from "../user-code/registries.js";

/** @throws ConfigError for an unknown `format`. */
export async function openMultiTurn(
  { format, ...options }: EnvironmentOptions["multiTurn"],
  folder: string,
  { toolFormats }: Pick<Registries, "toolFormats">,
): Promise<MultiTurnOptions> {
  return { ...options, format: await loadToolFormat(format, folder, toolFormats) };
}

/** Loads the interactions that a file names; null if rows have none. @throws ConfigError or ToolError */
export async function loadInteractions(
  { hasInteractions, interactionConfigPath }: EnvironmentOptions,
  folder: string,
  { interactionClasses }: Pick<Registries, "interactionClasses">,
): Promise<Map<string, BaseInteraction> | null> {
  if (!hasInteractions) return null;
  if (interactionConfigPath === null) return new Map();
  const file = resolvePath(folder, interactionConfigPath);
  const entries = await readConfigList(file, "interaction", interactionEntrySchema);
  return createInteractions(entries, dirname(file), interactionClasses);
}

/** Registers the config's own agent loops in the run's, and checks the default one. @throws ConfigError */
export async function loadConfiguredLoops(
  { agentLoopConfigPath, defaultAgentLoop }: EnvironmentOptions["agent"],
  folder: string,
  { agentLoops }: Pick<Registries, "agentLoops">,
): Promise<void> {
  if (agentLoopConfigPath !== null) {
    const file = resolvePath(folder, agentLoopConfigPath);
    const entries = await readConfigList(file, "agent_loops", agentLoopEntrySchema);
    await loadAgentLoops(entries, dirname(file), agentLoops);
  }
  agentLoops.get(defaultAgentLoop);
}
