import { hasFailed, type Trajectory } from "@cria/core";
import type { DumpLine } from "./dump-line.js";

/** A trajectory's judgement in the form of a dump's line. */
export function describeJudgement(
  trajectory: Trajectory,
): Pick<DumpLine, "reward" | "score" | "success" | "parts" | "rewards" | "extra" | "error"> {
  const { rewards } = trajectory;
  return {
    // A failed conversation has no reward, rather than a reward of 0.
    reward: hasFailed(trajectory) ? null : trajectory.reward,
    score: rewards.score,
    success: rewards.success,
    parts: [...rewards.parts],
    rewards: {
      outcome: rewards.outcome,
      length: rewards.length,
      tools: rewards.tools,
      turns: rewards.turns,
      tool_score: rewards.toolScore,
      interaction_score: rewards.interactionScore,
    },
    extra: trajectory.extraFields,
    error: trajectory.error ?? null,
  };
}

/** Step rewards in the form of a dump's line. */
export function describeStepRewards(entries: Trajectory["turnScores"]): DumpLine["turn_scores"] {
  return entries.map(({ value, tokenIndex }) => ({ value, token_index: tokenIndex }));
}
