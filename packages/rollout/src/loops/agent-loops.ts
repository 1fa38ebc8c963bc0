import { Registry } from "@cria/core";
import type { AgentLoopFactory, AgentLoopTraits } from "./agent-loop.js";
import { ToolAgentLoop } from "./tool-agent-loop.js";

/** How a loop runs conversations, and how it reads rows. */
export interface AgentLoopEntry {
  factory: AgentLoopFactory;
  traits: Required<AgentLoopTraits>;
  /**
   * For Cria's loops, which lay a message graph out: what a record has besides the policy's tokens, so that it can be replayed: all
   * answers of tools and interaction, or all calls of an agent. Their output is not checked and copied. Left out: a user's loop.
   */
  recorded?: "answers" | "calls";
}

/** By `agent_name` of rows and `agent.default_agent_loop`. */
export const agentLoops = new Registry<AgentLoopEntry>(
  "agent loop",
  {
    tool_agent: {
      factory: (context) => new ToolAgentLoop(context),
      traits: { prompt: true, tools: true, interactions: true, scores: false },
      recorded: "answers",
    },
    // One assistant turn, and nobody to answer it.
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
 * Makes a loop available by this name; a later one replaces it.
 * @param loops where; default: in every run.
 */
export function registerAgentLoop(
  name: string,
  factory: AgentLoopFactory,
  traits: AgentLoopTraits = {},
  loops = agentLoops,
): void {
  loops.register(name, { factory, traits: { prompt: true, tools: true, interactions: true, scores: true, ...traits } });
}
