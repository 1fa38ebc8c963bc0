import { placeRewards, type StepReward } from "./place-rewards.js";
import { rewardStrategies } from "./reward-strategies.js";

export interface RewardAggregation {
  trajectoryWeight: number;
  toolWeight: number;
  interactionWeight: number;
  /** A name in `rewardStrategies`; what it needs follows. */
  strategy: string;
  gamma: number;
  toolCallWeight: number;
  textWeight: number;
  /** For each valid tool call, on the last sampled token of its turn. */
  toolCallBonus: number;
  /** For each interaction turn whose score is above 0, on the same token as the score. */
  interactionBonus: number;
  /** Instead of the score of a trajectory that succeeds; null: the score stays. */
  successReward: number | null;
  /** Instead of the score of one that does not; null: the score stays. */
  failureReward: number | null;
  /** Added for each sampled token; negative or 0. */
  lengthPenalty: number;
}

export const defaultRewardAggregation: RewardAggregation = {
  trajectoryWeight: 1,
  toolWeight: 1,
  interactionWeight: 1,
  strategy: "last_token",
  gamma: 0.99,
  toolCallWeight: 2,
  textWeight: 0.5,
  toolCallBonus: 0,
  interactionBonus: 0,
  successReward: null,
  failureReward: null,
  lengthPenalty: 0,
};

export interface AggregateRewardInputs {
  /** 1 = sampled by the policy; as long as the trajectory's tokens. */
  responseMask: ArrayLike<number>;
  /** Of the reward function, else of calculateScore, else the sum of calcReward. */
  score: number;
  /** Whether the trajectory reached its goal. Default: score > 0. */
  success?: boolean;
  /** Step rewards of tools. */
  toolRewards: readonly StepReward[];
  /** Scores of interaction turns. */
  turnScores: readonly StepReward[];
  /** Where turns with valid tool calls end, `value` being their number. Only the bonus looks at it. */
  toolCalls?: readonly StepReward[];
  /** 1 = belongs to a tool call; as long as the mask. Only the strategy `importance` looks at it. */
  toolCallMask?: ArrayLike<number>;
}

/**
 * Token-level rewards of a trajectory, as long as its mask; their sum is the trajectory's reward:
 *
 *     base  = successReward if success and it is set; failureReward if not and it is set; else score
 *     whole = trajectoryWeight · base + lengthPenalty · N          N = sampled tokens
 *     r_t   = whole · share_t                                      shares by `strategy`, adding up to 1
 *           + Σ toolWeight · value          of tool step rewards that land on t
 *           + Σ toolCallBonus · count       of valid tool calls whose turn ends at t
 *           + Σ interactionWeight · value + [value > 0] · interactionBonus        of turn scores that land on t
 *
 * Without a sampled token all is 0.
 */
export function aggregateReward(inputs: AggregateRewardInputs, options: RewardAggregation): Float64Array {
  const { responseMask, score, success = score > 0 } = inputs;
  let sampled = 0;
  for (let t = 0; t < responseMask.length; t++) if (responseMask[t]) sampled++;
  if (sampled === 0) return new Float64Array(responseMask.length);
  const base = (success ? options.successReward : options.failureReward) ?? score;
  const steps = [
    ...inputs.toolRewards.map((step) => ({ ...step, value: options.toolWeight * step.value })),
    ...(inputs.toolCalls ?? []).map((step) => ({ ...step, value: options.toolCallBonus * step.value })),
    ...inputs.turnScores.map((step) => ({
      ...step,
      value: options.interactionWeight * step.value + (step.value > 0 ? options.interactionBonus : 0),
    })),
  ];
  return placeRewards({
    responseMask,
    reward: options.trajectoryWeight * base + options.lengthPenalty * sampled,
    steps,
    shares: rewardStrategies.get(options.strategy)({ ...options, responseMask, toolCallMask: inputs.toolCallMask }),
  });
}
