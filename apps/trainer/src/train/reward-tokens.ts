import { aggregateReward } from "@cria/algorithms";
import { DataError, type Trajectory } from "@cria/core";
import { findToolCalls, maskToolCalls } from "@cria/rollout";
import { getToolParser } from "@cria/tools";
import { makeRewardAggregation } from "./open-rewards.js";
import type { Session } from "./session-type.js";

/**
 * The trajectory's rewards on its tokens, by `reward_model`: weights, strategy, bonuses, penalties.
 * @throws DataError when a reward function or a tool gave something that is not a number.
 */
export function rewardTokens(trajectory: Trajectory, session: Session): Float64Array {
  const options = makeRewardAggregation(session.config.reward_model);
  const { responseMask, toolRewards, turnScores, extraFields } = trajectory;
  const { score, acc } = extraFields as { score: number; acc?: unknown };
  // Reading calls again from the tokens costs time: only for those who ask.
  const needsCalls = options.toolCallBonus !== 0 || options.strategy === "importance";
  const calls = needsCalls ? listCalls(trajectory, session) : [];
  const rewards = aggregateReward(
    {
      responseMask,
      score,
      success: typeof acc === "number" || typeof acc === "boolean" ? Number(acc) > 0 : undefined,
      toolRewards,
      turnScores,
      toolCalls: calls.map((call) => ({ value: call.valid, tokenIndex: call.lastToken })),
      toolCallMask: maskToolCalls(responseMask.length, calls),
    },
    options,
  );
  if (rewards.every(Number.isFinite)) return rewards;
  throw new DataError("has a reward that is not a number", {
    code: "data/bad-reward",
    subject: `row ${trajectory.rowIndex} (data_source "${trajectory.dataSource}"), sample ${trajectory.sampleIndex}`,
    expected: "finite numbers from the reward function, from tools and from interactions",
    received: `score ${score}; tools ${toolRewards.map((r) => r.value)}; turns ${turnScores.map((s) => s.value)}`,
    remedy: "check the reward function with this row",
  });
}

function listCalls(trajectory: Trajectory, { engine, rollout }: Session) {
  const parse = getToolParser(rollout.multiTurn.format);
  if (!parse || rollout.tools.size === 0) return [];
  return findToolCalls(trajectory, {
    engine,
    parse,
    schemas: [...rollout.tools.values()].map((tool) => tool.schema),
    maxParallelCalls: rollout.multiTurn.maxParallelCalls,
  });
}
