import { ConfigError } from "@cria/core";
import { importExport } from "@cria/tools";
import type { AgentLoop, AgentLoopContext, AgentLoopTraits } from "./agent-loop.js";
import { agentLoops, registerAgentLoop } from "./agent-loops.js";

/** One entry of an agent loop config file. */
export interface AgentLoopConfigEntry {
  /** What `agent_name` and `agent.default_agent_loop` call it. */
  name: string;
  /** `./my-loop.ts#MyLoop`: a class that is made for each conversation, or a function that makes a loop. */
  class_name: string;
  /** Given to the class or function as its second argument. */
  config?: Record<string, unknown>;
  /** Whether its prompts describe the tools; default true. */
  tools?: boolean;
}

type LoopClass = new (context: AgentLoopContext, config: Record<string, unknown>) => AgentLoop;
type LoopFunction = (context: AgentLoopContext, config: Record<string, unknown>) => AgentLoop;

/**
 * Registers the agent loops of a config; relative modules start at `baseFolder`, TypeScript needs no build step.
 * @param loops registry that they are added to; each run has one.
 * @throws ConfigError when one cannot be loaded or is not an agent loop.
 */
export async function loadAgentLoops(
  entries: readonly AgentLoopConfigEntry[],
  baseFolder: string,
  loops = agentLoops,
): Promise<void> {
  for (const { name, class_name, config = {}, tools } of entries) {
    const found = await importExport(class_name, baseFolder, "class_name");
    if (typeof found !== "function") {
      throw new ConfigError("is not an agent loop", {
        code: "config/bad-value",
        subject: `class_name "${class_name}"`,
        expected: "a class with run(sampling, row), or a function that makes one",
        received: typeof found,
      });
    }
    const isClass = typeof (found.prototype as Partial<AgentLoop> | undefined)?.run === "function";
    const traits: AgentLoopTraits = { tools };
    if (tools === undefined) delete traits.tools;
    registerAgentLoop(
      name,
      isClass
        ? (context) => new (found as LoopClass)(context, config)
        : (context) => (found as LoopFunction)(context, config),
      traits,
      loops,
    );
  }
}
