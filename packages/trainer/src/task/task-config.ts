import { resolve } from "node:path";
import { isAddress } from "@cria/hub/internal";
import { makeFunctionAgent } from "@cria/rollout";
import type { Registries } from "../user-code/registries.js";
import { areFiles } from "./check-definition.js";
import type { TaskDefinition } from "./task-definition.js";

/** What stands in a config for rows that lie in memory. */
export const ROWS_IN_MEMORY = "(rows in memory)";

/** Name of the loop of an agent that lies in memory. */
export const AGENT_IN_MEMORY = "(agent in memory)";

/** A part of a config file, before defaults. */
export type RawSection = Record<string, unknown>;

/** The part of a config that a task says; what it leaves out has the config's defaults. */
export function describeTask(task: TaskDefinition<object>): Record<string, RawSection> {
  const { rows, agent, tools, interaction, reward, toolFormat, maxTurns, maxPromptLength, maxResponseLength } = task;
  const [path, name] = typeof reward === "string" ? splitExport(reward) : [];
  return {
    data: clean({
      train_files: nameFiles(rows),
      max_prompt_length: maxPromptLength,
      max_response_length: maxResponseLength,
    }),
    actor_rollout_ref: {
      rollout: clean({
        prompt_length: maxPromptLength,
        response_length: maxResponseLength,
        agent: agent && { default_agent_loop: AGENT_IN_MEMORY },
        multi_turn: clean({
          tool_config_path: typeof tools === "string" ? resolve(tools) : undefined,
          interaction_config_path: typeof interaction === "string" ? resolve(interaction) : undefined,
          max_assistant_turns: maxTurns,
          format: toolFormat,
        }),
      }),
    },
    ...(path === undefined ? {} : { custom_reward_function: clean({ path, name }) }),
  };
}

/** Rows as `data.train_files` and `data.val_files` name them. */
export function nameFiles(rows: TaskDefinition<object>["rows"]): string[] {
  return areFiles(rows) ? [rows].flat().map(resolveFile) : [ROWS_IN_MEMORY];
}

/** Addresses of a hub stay as they are. */
export const resolveFile = (file: string) => (isAddress(file) ? file : resolve(file));

function splitExport(path: string): [string, string | undefined] {
  const [file, name] = path.split("#");
  return [resolve(file!), name];
}

function clean(section: RawSection): RawSection {
  return Object.fromEntries(Object.entries(section).filter(([, value]) => value !== undefined));
}

/** Adds a task's agent to the run's agent loops, under the name that `describeTask` gives it. */
export function registerAgent(
  { agentLoops }: Pick<Registries, "agentLoops">,
  { agent }: Pick<TaskDefinition<object>, "agent">,
): void {
  if (agent) agentLoops.register(AGENT_IN_MEMORY, makeFunctionAgent(agent));
}
