import { languageModel } from "@cria/ai-sdk";
import { registerAgentEndpoint, registerAgentModel } from "@cria/rollout";
import { openAgentEndpoint } from "@cria/serve";

/** Agents are given the policy as a model of the AI SDK; programs reach it over HTTP. */
export function connectAgents(): void {
  registerAgentModel(languageModel);
  registerAgentEndpoint(openAgentEndpoint());
}
