import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { BranchCredit } from "@cria/episodes";
import type { ChatModel } from "../chat/chat-model.js";
import type { AgentEndpoint } from "./agent-endpoint.js";

/** Wraps the policy as a language model of the AI SDK. */
export type MakeAgentModel = (chat: ChatModel) => LanguageModelV3;

/** Settings of agents that call the policy themselves. */
export interface AgentOptions {
  /** Time limit of an episode in seconds; null: no limit. */
  timeoutS: number | null;
  /** Maximum number of policy calls in an episode. */
  maxCalls: number;
  /** Answers that receive the episode's credit. */
  branchCredit: BranchCredit;
  /** False: tokens from which a grammar removed probability get mask 0. */
  trainOnConstrained: boolean;
  /** Loads the wrapper that makes `model` for agent functions. Left out: they have only `session`. */
  loadModel?: () => Promise<MakeAgentModel>;
  /** Loads the HTTP endpoint for programs. Left out: programs cannot be agents. */
  loadEndpoint?: () => Promise<AgentEndpoint>;
}

export const defaultAgentOptions: AgentOptions = {
  timeoutS: 600,
  maxCalls: 100,
  branchCredit: "all_branches",
  trainOnConstrained: false,
};
