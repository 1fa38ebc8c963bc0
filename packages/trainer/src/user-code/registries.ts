import type { Algorithms } from "@cria/algorithms";
import { defaultAlgorithms } from "@cria/algorithms/internal";
import type { Registry } from "@cria/core";
import {
  type AgentLoopEntry,
  agentLoops,
  type GroupPicker,
  type GroupSamplerClass,
  groupSamplers,
  type RewardFunction,
  type RewardManagerFactory,
  type RowPicker,
  type RowSamplerClass,
  rewardManagers,
  rowSamplers,
} from "@cria/rollout";
import { rewardFunctions } from "@cria/rollout/internal";
import {
  type InteractionClass,
  interactionClasses,
  type ToolClass,
  type ToolFactory,
  type ToolFormat,
  toolClasses,
  toolFormats,
} from "@cria/tools";

/** Registries for the names in the config of one run. */
export interface Registries extends Algorithms {
  agentLoops: Registry<AgentLoopEntry>;
  /** Reward functions by `data_source`. */
  rewards: Registry<RewardFunction>;
  rewardManagers: Registry<RewardManagerFactory>;
  rowSamplers: Registry<RowSamplerClass | RowPicker>;
  groupSamplers: Registry<GroupSamplerClass | GroupPicker>;
  toolClasses: Registry<ToolClass | ToolFactory>;
  interactionClasses: Registry<InteractionClass>;
  toolFormats: Registry<ToolFormat>;
}

/**
 * Opens the registries of a new run: with everything built in or registered in code. Exports that its config loads
 * by path are added only to these.
 */
export function openRegistries(): Registries {
  return {
    advantageEstimators: defaultAlgorithms.advantageEstimators.extend(),
    policyLosses: defaultAlgorithms.policyLosses.extend(),
    aggregations: defaultAlgorithms.aggregations.extend(),
    klEstimates: defaultAlgorithms.klEstimates.extend(),
    lossTerms: defaultAlgorithms.lossTerms.extend(),
    agentLoops: agentLoops.extend(),
    rewards: rewardFunctions.extend(),
    rewardManagers: rewardManagers.extend(),
    rowSamplers: rowSamplers.extend(),
    groupSamplers: groupSamplers.extend(),
    toolClasses: toolClasses.extend(),
    interactionClasses: interactionClasses.extend(),
    toolFormats: toolFormats.extend(),
  };
}
