import type { TaskDefinition } from "./task-definition.js";

/** What stands in a config for rows that lie in memory. */
export const ROWS_IN_MEMORY = "(rows in memory)";

/** A part of a config file, before defaults. */
export type RawSection = Record<string, unknown>;

/** The part of a config that a task says; what it leaves out has the config's defaults. */
export function describeTask(task: TaskDefinition<object>): Record<string, RawSection> {
  const { rows, tools, interaction, reward, toolFormat, maxTurns, maxPromptLength, maxResponseLength } = task;
  const files = typeof rows === "string" ? [rows] : rows;
  const areFiles = files.every((row: unknown) => typeof row === "string");
  const [path, name] = typeof reward === "string" ? splitExport(reward) : [];
  return {
    data: clean({
      train_files: areFiles ? [...files] : [ROWS_IN_MEMORY],
      max_prompt_length: maxPromptLength,
      max_response_length: maxResponseLength,
    }),
    actor_rollout_ref: {
      rollout: clean({
        prompt_length: maxPromptLength,
        response_length: maxResponseLength,
        multi_turn: clean({
          tool_config_path: typeof tools === "string" ? tools : undefined,
          interaction_config_path: typeof interaction === "string" ? interaction : undefined,
          max_assistant_turns: maxTurns,
          format: toolFormat,
        }),
      }),
    },
    ...(path === undefined ? {} : { custom_reward_function: clean({ path, name }) }),
  };
}

function splitExport(path: string): [string, string | undefined] {
  const [file, name] = path.split("#");
  return [file!, name];
}

function clean(section: RawSection): RawSection {
  return Object.fromEntries(Object.entries(section).filter(([, value]) => value !== undefined));
}
