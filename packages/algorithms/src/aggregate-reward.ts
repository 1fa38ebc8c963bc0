import type { RewardParts, StepReward } from "@cria/core";
import { placeRewards } from "./place-rewards.js";
import { type RewardStrategy, rewardStrategies } from "./reward-strategies.js";

export interface RewardAggregation {
  trajectoryWeight: number;
  toolWeight: number;
  interactionWeight: number;
  /** A strategy, or a name in `rewardStrategies`; the following fields are its parameters. */
  strategy: string | RewardStrategy;
  gamma: number;
  toolCallWeight: number;
  textWeight: number;
  /** Bonus per valid tool call, on the last sampled token of its turn. */
  toolCallBonus: number;
  /** Bonus per interaction turn with a score above 0, on the same token as the score. */
  interactionBonus: number;
  /** Replaces the score of a trajectory that succeeds; null: keeps the score. */
  successReward: number | null;
  /** Replaces the score of a trajectory that does not succeed; null: keeps the score. */
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

/** A judged trajectory, as `runRollouts` of @cria/rollout passes it to its `aggregate`. */
export interface AggregateRewardInputs {
  /** 1 = sampled by the policy; as long as the trajectory's tokens. */
  responseMask: ArrayLike<number>;
  /** Score by the reward function, else by calculateScore, else the sum of calcReward. */
  score: number;
  /** True if the trajectory reached its goal. Default: score > 0. */
  success?: boolean;
  /** Step rewards of tools. */
  toolRewards: readonly StepReward[];
  /** Scores of interaction turns. */
  turnScores: readonly StepReward[];
  /** Ends of turns with valid tool calls; `value` is their number. Only the bonus reads it. */
  toolCalls?: readonly StepReward[];
  /** 1 = belongs to a tool call; as long as the mask. Only the strategy `importance` reads it. */
  toolCallMask?: ArrayLike<number>;
}

/**
 * A trajectory's rewards on its tokens, and their parts. The sum over the tokens is the trajectory's reward:
 *
 *     base    = successReward if success and it is set; failureReward if not and it is set; else score
 *     outcome = trajectoryWeight · base
 *     length  = lengthPenalty · N                                  N = sampled tokens
 *     r_t     = (outcome + length) · share_t                       shares by `strategy`, adding up to 1
 *             + Σ toolWeight · value          of tool step rewards that land on t                       }  together: tools
 *             + Σ toolCallBonus · count       of valid tool calls whose turn ends at t                  }
 *             + Σ interactionWeight · value + [value > 0] · interactionBonus    of turn scores that land on t: turns
 *
 * Without a sampled token all is 0.
 */
export function aggregateReward(inputs: AggregateRewardInputs, options: RewardAggregation): RewardParts {
  const { responseMask, score, success = score > 0 } = inputs;
  let sampled = 0;
  for (let t = 0; t < responseMask.length; t++) if (responseMask[t]) sampled++;
  if (sampled === 0)
    return { outcome: 0, length: 0, tools: 0, turns: 0, tokenLevel: new Float64Array(responseMask.length) };
  const base = (success ? options.successReward : options.failureReward) ?? score;
  const outcome = options.trajectoryWeight * base;
  const length = options.lengthPenalty * sampled;
  // Finding calls in the tokens may cost time, so it is done only if it matters.
  const calls = options.toolCallBonus === 0 ? [] : (inputs.toolCalls ?? []);
  const tools = [
    ...inputs.toolRewards.map((step) => ({ ...step, value: options.toolWeight * step.value })),
    ...calls.map((step) => ({ ...step, value: options.toolCallBonus * step.value })),
  ];
  const turns = inputs.turnScores.map((step) => ({
    ...step,
    value: options.interactionWeight * step.value + (step.value > 0 ? options.interactionBonus : 0),
  }));
  const tokenLevel = placeRewards({
    responseMask,
    reward: outcome + length,
    steps: [...tools, ...turns],
    shares: rewardStrategies.resolve(options.strategy)({
      ...options,
      responseMask,
      get toolCallMask() {
        return inputs.toolCallMask;
      },
    }),
  });
  return { outcome, length, tools: sumValues(tools), turns: sumValues(turns), tokenLevel };
}

function sumValues(steps: readonly StepReward[]): number {
  return steps.reduce((sum, step) => sum + step.value, 0);
}
