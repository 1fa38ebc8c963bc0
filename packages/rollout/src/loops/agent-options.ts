import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { BranchCredit } from "@cria/episodes";
import type { ChatModel } from "../chat/chat-model.js";
import type { AgentEndpoint } from "./agent-endpoint.js";

/** Makes the policy a model of the AI SDK. */
export type MakeAgentModel = (chat: ChatModel) => LanguageModelV3;

/** How agents that call the policy by themselves are run. */
export interface AgentOptions {
  /** Seconds that an episode may take; null: no limit. */
  timeoutS: number | null;
  /** Most calls of the policy in an episode. */
  maxCalls: number;
  /** Which answers of an episode its reward teaches. */
  branchCredit: BranchCredit;
  /** Whether tokens count that a grammar took probability away from. */
  trainOnConstrained: boolean;
  /** Loads what gives functions their `model`. Left out: they have `session` alone. */
  loadModel?: () => Promise<MakeAgentModel>;
  /** Loads the endpoint that programs call. Left out: programs cannot be agents. */
  loadEndpoint?: () => Promise<AgentEndpoint>;
}

export const defaultAgentOptions: AgentOptions = {
  timeoutS: 600,
  maxCalls: 100,
  branchCredit: "all_branches",
  trainOnConstrained: false,
};
