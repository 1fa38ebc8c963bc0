import { ConfigError } from "@cria/core";
import { importExport } from "@cria/tools/internal";
import type { AgentLoop, AgentLoopContext, AgentLoopTraits } from "../loops/agent-loop.js";
import { agentLoops, registerAgentLoop } from "../loops/agent-loops.js";
import type { AgentFunction } from "./agent-function.js";
import { makeCommandAgent } from "./command-agent-loop.js";
import { makeFunctionAgent } from "./function-agent-loop.js";

/** One entry of an agent loop config file. */
export interface AgentLoopConfigEntry {
  /** Name used by `agent_name` of rows and `agent.default_agent_loop`. */
  name: string;
  /** `./my-loop.ts#MyLoop`: a class, instantiated once per conversation, or a function that returns a loop. */
  class_name?: string;
  /**
   * Instead of `class_name`: `./my-agent.ts#agent`, a function of `{ row, model, signal }` that calls the policy
   * itself.
   */
  agent?: string;
  /**
   * Instead of `class_name`: a program and its arguments, started once per episode in the folder of the config file.
   */
  command?: readonly string[];
  /** Passed to the class or function as its second argument. */
  config?: Record<string, unknown>;
  /** True if prompts describe the tools; default true. */
  tools?: boolean;
}

type LoopClass = new (context: AgentLoopContext, config: Record<string, unknown>) => AgentLoop;
type LoopFunction = (context: AgentLoopContext, config: Record<string, unknown>) => AgentLoop;

/**
 * Registers the agent loops of a config. Relative modules are resolved from `baseFolder`; TypeScript needs no build
 * step.
 * @param loops registry to add the loops to; each run has its own.
 * @throws ConfigError when one cannot be loaded or is not an agent loop.
 */
export async function loadAgentLoops(
  entries: readonly AgentLoopConfigEntry[],
  baseFolder: string,
  loops = agentLoops,
): Promise<void> {
  for (const entry of entries) {
    const { name, class_name, agent, command } = entry;
    const given = [class_name, agent, command].filter((value) => value !== undefined);
    if (given.length !== 1) throw refuseEntry(name, given.length);
    if (command !== undefined) loops.register(name, makeCommandAgent(command, baseFolder));
    else if (agent !== undefined) loops.register(name, makeFunctionAgent(await loadAgent(agent, baseFolder)));
    else await registerLoop(entry, class_name!, baseFolder, loops);
  }
}

async function registerLoop(
  { name, config = {}, tools }: AgentLoopConfigEntry,
  className: string,
  baseFolder: string,
  loops: typeof agentLoops,
): Promise<void> {
  const found = await importFunction("class_name", className, baseFolder, {
    summary: "is not an agent loop",
    expected: "a class with run(sampling, row), or a function that makes one",
  });
  const isClass = typeof (found.prototype as Partial<AgentLoop> | undefined)?.run === "function";
  const traits: AgentLoopTraits = { tools };
  if (tools === undefined) delete traits.tools;
  registerAgentLoop(
    name,
    isClass
      ? (context) => new (found as unknown as LoopClass)(context, config)
      : (context) => (found as LoopFunction)(context, config),
    traits,
    loops,
  );
}

async function loadAgent(path: string, baseFolder: string): Promise<AgentFunction<never>> {
  const expected = "a function of { row, model, signal }";
  const found = await importFunction("agent", path, baseFolder, { summary: "is not an agent", expected });
  return found as AgentFunction<never>;
}

async function importFunction(
  key: string,
  path: string,
  baseFolder: string,
  { summary, expected }: { summary: string; expected: string },
): Promise<(...given: never[]) => unknown> {
  const found = await importExport(path, baseFolder, key);
  if (typeof found === "function") return found as (...given: never[]) => unknown;
  throw new ConfigError(summary, {
    code: "config/bad-value",
    subject: `${key} "${path}"`,
    expected,
    received: typeof found,
  });
}

function refuseEntry(name: string, count: number): ConfigError {
  return new ConfigError("does not say one thing to run", {
    code: "config/bad-value",
    subject: `agent loop "${name}"`,
    expected: "one of class_name, agent, command",
    received: count === 0 ? "none of them" : `${count} of them`,
  });
}
