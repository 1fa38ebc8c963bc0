import type { Registry } from "@cria/core";
import type { BaseInteraction, BaseTool } from "@cria/tools";
import type { DatasetRow } from "../data/dataset-row.js";
import { selectTools } from "../data/select-tools.js";
import type { RewardFunction } from "../rewards/reward-function.js";
import { makeUnknownSource, rewardFunctions } from "../rewards/reward-registry.js";
import { type AgentLoopEntry, agentLoops } from "./agent-loops.js";
import { selectInteraction } from "./episode-interaction.js";
import { scoresConversations } from "./episode-tools.js";

export interface PossibleScores {
  tools: ReadonlyMap<string, BaseTool>;
  interactions: ReadonlyMap<string, BaseInteraction> | null;
  defaultAgentLoop: string;
  /** Default: built-in and registered loops. */
  agentLoops?: Registry<AgentLoopEntry>;
  /** Reward functions by `data_source`. Default: built-in and registered ones. */
  rewards?: Registry<RewardFunction>;
}

/**
 * For runs without a reward function of the user's: checks that a row's data source, interaction, one of its tools,
 * or its agent loop can score it.
 * @throws ConfigError naming row, data source and the known sources if none can.
 */
export function checkRowHasReward(row: DatasetRow, options: PossibleScores): void {
  const { rewards = rewardFunctions, agentLoops: loops = agentLoops } = options;
  if (rewards.find(row.dataSource)) return;
  const { traits } = loops.get(row.agentName ?? options.defaultAgentLoop);
  if (traits.scores) return;
  if (traits.interactions && selectInteraction(options.interactions, row)) return;
  const tools = traits.tools ? selectTools(options.tools, row) : [];
  if (tools.some((name) => scoresConversations(options.tools.get(name)!))) return;
  throw makeUnknownSource(row.dataSource, rewards.names(), `row ${row.index} (${row.place})`);
}
