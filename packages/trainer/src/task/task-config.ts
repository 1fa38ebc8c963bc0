import { resolve } from "node:path";
import { isAddress } from "@cria/hub/internal";
import { makeFunctionAgent } from "@cria/rollout/internal";
import type { z } from "zod";
import { trainKeys } from "../config/import/config-keys.js";
import { environmentOptions } from "../config/options/environment.js";
import { writeKey } from "../config/raw-config.js";
import type { Registries } from "../user-code/registries.js";
import { areFiles } from "./check-definition.js";
import type { TaskDefinition } from "./task-definition.js";

/** Placeholder in a config for rows in memory. */
export const ROWS_IN_MEMORY = "(rows in memory)";

/** Name of the agent loop of an agent in memory. */
export const AGENT_IN_MEMORY = "(agent in memory)";

/** Environment options of a task; left-out ones have defaults. */
export function describeEnvironment(task: TaskDefinition<object>): z.input<typeof environmentOptions> {
  const { agent, tools, interaction, reward, toolFormat, maxTurns, maxPromptLength, maxResponseLength } = task;
  const [path, name] = typeof reward === "string" ? splitExport(reward) : [];
  return {
    toolConfigPath: typeof tools === "string" ? resolve(tools) : undefined,
    interactionConfigPath: typeof interaction === "string" ? resolve(interaction) : undefined,
    maxPromptLength,
    maxResponseLength,
    multiTurn: { maxAssistantTurns: maxTurns, format: toolFormat },
    agent: { defaultAgentLoop: agent && AGENT_IN_MEMORY },
    rewards: { function: { path, name } },
  };
}

/** Writes a task's settings into a raw config. */
export function exportTask(task: TaskDefinition<object>, raw: Record<string, unknown>): void {
  const { maxPromptLength, maxResponseLength } = task;
  writeKey(raw, "data.train_files", nameFiles(task.rows));
  trainKeys.write(raw, environmentOptions, describeEnvironment(task));
  // In a config, each of these has two keys.
  if (maxPromptLength !== undefined) writeKey(raw, "actor_rollout_ref.rollout.prompt_length", maxPromptLength);
  if (maxResponseLength !== undefined) writeKey(raw, "actor_rollout_ref.rollout.response_length", maxResponseLength);
}

/** Values of `data.train_files` and `data.val_files` for rows. */
export function nameFiles(rows: TaskDefinition<object>["rows"]): string[] {
  return areFiles(rows) ? [rows].flat().map(resolveFile) : [ROWS_IN_MEMORY];
}

/** Makes a path absolute; hub addresses stay unchanged. */
export const resolveFile = (file: string) => (isAddress(file) ? file : resolve(file));

function splitExport(path: string): [string, string | undefined] {
  const [file, name] = path.split("#");
  return [resolve(file!), name];
}

/** Adds a task's agent to the run's agent loops, under the name that `describeEnvironment` gives it. */
export function registerAgent(
  { agentLoops }: Pick<Registries, "agentLoops">,
  { agent }: Pick<TaskDefinition<object>, "agent">,
): void {
  if (agent) agentLoops.register(AGENT_IN_MEMORY, makeFunctionAgent(agent));
}
