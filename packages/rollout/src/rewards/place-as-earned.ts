import type { StepReward } from "@cria/core";
import type { RewardAggregator } from "./finish-trajectory.js";

/**
 * Default aggregator: the score on the last sampled token, each step reward on the last sampled token up to its own,
 * all unweighted. Equals `aggregateReward` of @cria/algorithms with its defaults; that one adds weights, strategies
 * and bonuses.
 */
export const placeAsEarned: RewardAggregator = ({ responseMask, score, toolRewards, turnScores }) => {
  const tokenLevel = new Float64Array(responseMask.length);
  const last = responseMask.lastIndexOf(1);
  if (last < 0) return { outcome: 0, length: 0, tools: 0, turns: 0, tokenLevel };
  const place = (steps: readonly StepReward[]) => {
    for (const { value, tokenIndex } of steps) {
      const before = responseMask.lastIndexOf(1, tokenIndex);
      tokenLevel[before < 0 ? responseMask.indexOf(1) : before]! += value;
    }
    return steps.reduce((sum, { value }) => sum + value, 0);
  };
  const parts = { outcome: score, length: 0, tools: place(toolRewards), turns: place(turnScores) };
  tokenLevel[last]! += score;
  return { ...parts, tokenLevel };
};
