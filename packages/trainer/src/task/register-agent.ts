import { makeFunctionAgent } from "@cria/rollout";
import type { Registries } from "../user-code/registries.js";
import { AGENT_IN_MEMORY } from "./task-config.js";
import type { TaskDefinition } from "./task-definition.js";

/** Adds a task's agent to the run's agent loops, under the name that `describeTask` gives it. */
export function registerAgent(
  { agentLoops }: Pick<Registries, "agentLoops">,
  { agent }: Pick<TaskDefinition<object>, "agent">,
): void {
  if (agent) agentLoops.register(AGENT_IN_MEMORY, makeFunctionAgent(agent));
}
