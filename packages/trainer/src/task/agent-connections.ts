import type { AgentEndpoint, AgentOptions } from "@cria/rollout";

/** How agents reach the policy: functions as a model of the AI SDK, programs over HTTP. Both are loaded by the first that needs them. */
export function makeAgentConnections(): Required<Pick<AgentOptions, "loadModel" | "loadEndpoint">> {
  let endpoint: Promise<AgentEndpoint> | null = null;
  return {
    loadModel: async () => (await import("@cria/ai-sdk")).languageModel,
    loadEndpoint: () => {
      endpoint ??= import("@cria/serve/internal").then(({ openAgentEndpoint }) => openAgentEndpoint());
      return endpoint;
    },
  };
}
