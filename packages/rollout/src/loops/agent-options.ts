import type { BranchCredit } from "../episode/lay-out-graph.js";

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
}

export const defaultAgentOptions: AgentOptions = {
  timeoutS: 600,
  maxCalls: 100,
  branchCredit: "all_branches",
  trainOnConstrained: false,
};
