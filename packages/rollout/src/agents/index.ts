export { type AgentEndpoint, registerAgentEndpoint, type SessionAddress } from "./agent-endpoint.js";
export { runAgentEpisode } from "./agent-episode.js";
export { type AgentContext, type AgentFunction, type AgentResult, registerAgentModel } from "./agent-function.js";
export { makeCommandAgent } from "./command-agent-loop.js";
export { makeFunctionAgent } from "./function-agent-loop.js";
export { type AgentLoopConfigEntry, loadAgentLoops } from "./load-agent-loops.js";
