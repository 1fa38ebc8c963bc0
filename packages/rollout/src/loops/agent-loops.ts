import { Registry } from "@cria/core";
import type { AgentLoopFactory, AgentLoopTraits } from "./agent-loop.js";
import { ToolAgentLoop } from "./tool-agent-loop.js";

/** A loop's factory, and its traits, which decide how its rows are read. */
export interface AgentLoopEntry {
  factory: AgentLoopFactory;
  traits: Required<AgentLoopTraits>;
  /**
   * Only for Cria's own loops, which lay out a message graph: the recorded inputs beside the policy's tokens that
   * make an episode replayable: all answers of tools and interaction, or all calls of an agent. The output of such
   * loops is trusted, neither checked nor copied. Left out: a user's loop.
   */
  recorded?: "answers" | "calls";
}

/** Loops by `agent_name` of rows and `agent.default_agent_loop`. */
export const agentLoops = new Registry<AgentLoopEntry>(
  "agent loop",
  {
    tool_agent: {
      factory: (context) => new ToolAgentLoop(context),
      traits: { prompt: true, tools: true, interactions: true, scores: false },
      recorded: "answers",
    },
    // One assistant turn without a reply.
    single_turn_agent: {
      factory: (context) =>
        new ToolAgentLoop({
          ...context,
          tools: new Map(),
          interactions: null,
          multiTurn: { ...context.multiTurn, maxAssistantTurns: 1 },
        }),
      traits: { prompt: true, tools: false, interactions: false, scores: false },
      recorded: "answers",
    },
  },
  {
    subject: "agent_name",
    remedy: "register it with registerAgentLoop, or list it in agent.agent_loop_config_path",
  },
);

/**
 * Registers a loop under this name; a later one replaces an earlier one.
 * @param loops registry to add it to; default: the one shared by all runs.
 */
export function registerAgentLoop(
  name: string,
  factory: AgentLoopFactory,
  traits: AgentLoopTraits = {},
  loops = agentLoops,
): void {
  loops.register(name, { factory, traits: { prompt: true, tools: true, interactions: true, scores: true, ...traits } });
}
