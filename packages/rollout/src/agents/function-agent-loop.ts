import { ConfigError } from "@cria/core";
import type { AgentLoopEntry } from "../loops/agent-loops.js";
import { runAgentEpisode } from "./agent-episode.js";
import type { AgentContext, AgentFunction } from "./agent-function.js";
import { runAgent } from "./run-agent.js";

/** The loop of an agent that is a function in this process. */
export function makeFunctionAgent(agent: AgentFunction<never>): AgentLoopEntry {
  return {
    factory: (context) => ({
      run: (sampling, row) =>
        runAgentEpisode(context, sampling, row, async (session, signal) => {
          const makeModel = (await context.agent.loadModel?.()) ?? refuseModel;
          const runUntil = (ending: AbortSignal) => {
            const given: AgentContext<unknown> = {
              row: row.extraInfo.row ?? row,
              // Created on first use: an agent that does not use the AI SDK need not load it.
              get model() {
                return makeModel(session);
              },
              session,
              signal: ending,
              seed: sampling.seed,
            };
            return agent(given as AgentContext<never>);
          };
          try {
            return await runAgent(runUntil, signal);
          } finally {
            session.leave();
          }
        }),
    }),
    traits: { prompt: false, tools: false, interactions: false, scores: true },
    recorded: "calls",
  };
}

function refuseModel(): never {
  throw new ConfigError("is not there", {
    code: "config/no-agent-model",
    subject: "agent: model",
    expected: "rollouts with agent.loadModel, as train and rollOut have it",
    remedy: "use session.complete in place of model",
  });
}
