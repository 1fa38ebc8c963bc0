export { runAgentEpisode } from "./agent-episode.js";
export type { AgentContext, AgentFunction, AgentResult } from "./agent-function.js";
export { makeCommandAgent } from "./command-agent-loop.js";
export { makeFunctionAgent } from "./function-agent-loop.js";
export { type AgentLoopConfigEntry, loadAgentLoops } from "./load-agent-loops.js";
