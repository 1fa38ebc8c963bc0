import type { AgentEndpoint, AgentOptions } from "@cria/rollout";

/** Connects agents to the policy: functions through the AI SDK, programs over HTTP. Each is loaded on first use. */
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
