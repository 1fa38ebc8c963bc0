import type { StepReward } from "@cria/core";

export interface PlaceRewardsInputs {
  /** 1 = sampled by the policy; as long as the trajectory's tokens. */
  responseMask: ArrayLike<number>;
  /** Reward of the whole trajectory, without the steps' rewards. */
  reward: number;
  steps?: readonly StepReward[];
  /** Share of `reward` for each token, adding up to 1. Default: all on the last sampled token. */
  shares?: ArrayLike<number>;
}

/**
 * Token-level rewards of a trajectory, as long as its mask. The trajectory's reward goes to the last sampled token (or
 * is divided by `shares`), a step's reward to its own token; a step that points at an observation goes to the last
 * sampled token before it, because only sampled tokens are in the loss. A trajectory without a sampled token gets only
 * zeros.
 */
export function placeRewards({ responseMask, reward, steps = [], shares }: PlaceRewardsInputs): Float64Array {
  const rewards = new Float64Array(responseMask.length);
  const first = findSampled(responseMask, 0, 1);
  if (first < 0) return rewards;
  const add = (value: number, tokenIndex: number) => {
    const before = findSampled(responseMask, Math.min(tokenIndex, responseMask.length - 1), -1);
    rewards[before < 0 ? first : before]! += value;
  };
  for (const step of steps) add(step.value, step.tokenIndex);
  if (shares) for (let t = 0; t < rewards.length; t++) rewards[t]! += reward * shares[t]!;
  else add(reward, responseMask.length - 1);
  return rewards;
}

function findSampled(mask: ArrayLike<number>, start: number, direction: 1 | -1): number {
  for (let i = start; i >= 0 && i < mask.length; i += direction) if (mask[i]) return i;
  return -1;
}
