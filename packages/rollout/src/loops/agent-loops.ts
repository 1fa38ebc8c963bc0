import { ConfigError } from "@cria/core";
import type { AgentLoopFactory, AgentLoopTraits } from "./agent-loop.js";
import { ToolAgentLoop } from "./tool-agent-loop.js";

interface Entry {
  factory: AgentLoopFactory;
  traits: Required<AgentLoopTraits>;
}

const loops = new Map<string, Entry>([
  [
    "tool_agent",
    { factory: (context) => new ToolAgentLoop(context), traits: { tools: true, interactions: true, scores: false } },
  ],
  // One assistant turn, and nobody to answer it.
  [
    "single_turn_agent",
    {
      factory: (context) =>
        new ToolAgentLoop({
          ...context,
          tools: new Map(),
          interactions: null,
          multiTurn: { ...context.multiTurn, maxAssistantTurns: 1 },
        }),
      traits: { tools: false, interactions: false, scores: false },
    },
  ],
]);

export function listAgentLoops(): string[] {
  return [...loops.keys()];
}

/** A later loop of the same name replaces the earlier one. */
export function registerAgentLoop(name: string, factory: AgentLoopFactory, traits: AgentLoopTraits = {}): void {
  loops.set(name, { factory, traits: { tools: true, interactions: true, scores: true, ...traits } });
}

/** @throws ConfigError when no loop has this name. */
export function getAgentLoop(name: string): AgentLoopFactory {
  return find(name).factory;
}

/** @throws ConfigError when no loop has this name. */
export function getAgentLoopTraits(name: string): Required<AgentLoopTraits> {
  return find(name).traits;
}

function find(name: string): Entry {
  const loop = loops.get(name);
  if (loop) return loop;
  throw new ConfigError("is not a registered agent loop", {
    code: "config/unknown-agent-loop",
    subject: "agent_name",
    expected: [...loops.keys()].join(", "),
    received: name,
    remedy: "register it with registerAgentLoop, or list it in agent.agent_loop_config_path",
  });
}
