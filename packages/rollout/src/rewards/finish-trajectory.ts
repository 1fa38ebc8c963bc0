import type { RewardParts, ScorePart, StepReward, Trajectory } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { largestNumber } from "@cria/episodes/internal";
import { type FoundToolCalls, maskToolCalls } from "./find-tool-calls.js";
import type { Judgement } from "./reward-manager.js";

/** Rewards of a judged trajectory, before they are placed on tokens. */
export interface EarnedRewards {
  /** 1 = sampled by the policy; as long as the trajectory's tokens. */
  responseMask: Uint8Array;
  score: number;
  /** True if the goal was reached: `acc` of the reward function, else score > 0. */
  success: boolean;
  toolRewards: readonly StepReward[];
  turnScores: readonly StepReward[];
  /** Ends of turns with valid tool calls; `value` is the number of calls. Parsed from the tokens on first use. */
  readonly toolCalls: readonly StepReward[];
  /** 1 = part of a tool call; as long as the mask. Parsed from the tokens on first use. */
  readonly toolCallMask: Uint8Array;
}

/**
 * Places rewards on tokens: `(earned) => aggregateReward(earned, options)` with `aggregateReward` of
 * @cria/algorithms.
 */
export type RewardAggregator = (earned: EarnedRewards) => RewardParts;

/**
 * Adds the reward to a trajectory; a trajectory that failed, or whose judge failed, gets none. A reward beyond the
 * range of single precision counts as a failure of the judge.
 * @param findCalls parses the tool calls from the tokens.
 */
export function finishTrajectory(
  ended: UnjudgedTrajectory,
  judgement: Judgement,
  aggregate: RewardAggregator,
  findCalls: (ended: UnjudgedTrajectory) => FoundToolCalls[],
): Trajectory {
  if ("error" in judgement) return failTrajectory(ended, judgement);
  const { score: _own, toolScore, interactionScore, scoreError: _, ...record } = ended;
  const { score, extra } = judgement;
  const success = typeof extra.acc === "number" || typeof extra.acc === "boolean" ? Number(extra.acc) > 0 : score > 0;
  const parts = aggregate(describeEarnings(ended, score, success, findCalls));
  const reward = parts.tokenLevel.reduce((sum, value) => sum + value, 0);
  if (![...parts.tokenLevel, reward].every((value) => Number.isFinite(Math.fround(value))))
    return failTrajectory(ended, { error: describeBadReward(ended, score, reward), extra });
  return {
    ...record,
    reward,
    rewards: {
      score,
      parts: judgement.parts ?? [makeDefaultPart(score)],
      success,
      toolScore,
      interactionScore,
      ...parts,
    },
    extraFields: { ...ended.extraFields, ...extra },
  };
}

/**
 * Record of a conversation that is not trained on. @param judgement the failed judge's error, if that is the reason.
 */
export function failTrajectory(ended: UnjudgedTrajectory, judgement?: Judgement & { error: string }): Trajectory {
  const { score: _own, toolScore, interactionScore, scoreError: _, ...record } = ended;
  const { length } = ended.tokenIds;
  return {
    ...record,
    responseMask: new Uint8Array(length),
    rolloutLogprobs: new Float32Array(length),
    turnScores: [],
    toolRewards: [],
    reward: 0,
    rewards: {
      score: null,
      parts: [],
      success: null,
      toolScore,
      interactionScore,
      outcome: 0,
      length: 0,
      tools: 0,
      turns: 0,
      tokenLevel: new Float64Array(length),
    },
    ...(judgement === undefined
      ? {}
      : {
          metrics: { ...ended.metrics, failed: 1, reward_failed: 1 },
          extraFields: { ...ended.extraFields, ...judgement.extra },
          error: judgement.error,
        }),
  };
}

function makeDefaultPart(value: number): ScorePart {
  return { name: "score", value, weight: 1, by: "the reward manager" };
}

function describeEarnings(
  ended: UnjudgedTrajectory,
  score: number,
  success: boolean,
  findCalls: (ended: UnjudgedTrajectory) => FoundToolCalls[],
): EarnedRewards {
  const { responseMask, toolRewards, turnScores } = ended;
  let found: FoundToolCalls[] | undefined;
  const calls = () => {
    found ??= findCalls(ended);
    return found;
  };
  return {
    responseMask,
    score,
    success,
    toolRewards,
    turnScores,
    get toolCalls() {
      return calls().map((call) => ({ value: call.valid, tokenIndex: call.lastToken }));
    },
    get toolCallMask() {
      return maskToolCalls(responseMask.length, calls());
    },
  };
}

function describeBadReward({ toolRewards, turnScores }: UnjudgedTrajectory, score: number, reward: number): string {
  const list = (steps: readonly { value: number }[]) => steps.map((step) => step.value).join(", ") || "none";
  return `the reward is ${reward}: expected the score and each step reward at most ${largestNumber} in size, and weights that leave their sum finite; received score ${score}, tools ${list(toolRewards)}, turns ${list(turnScores)}`;
}
