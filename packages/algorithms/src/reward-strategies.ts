import { Registry } from "@cria/core";

export interface RewardStrategyInputs {
  /** 1 = sampled by the policy; as long as the trajectory's tokens. */
  responseMask: ArrayLike<number>;
  /** 1 = belongs to a tool call; as long. Only `importance` reads it; default: no token is a call's. */
  toolCallMask?: ArrayLike<number>;
  /** Parameter of `exponential_decay`, in (0, 1]. */
  gamma: number;
  /** Weights for `importance`, at least 0. */
  toolCallWeight: number;
  textWeight: number;
}

/**
 * The share of the trajectory's reward for each token: as long as the mask, 0 for tokens that were not sampled. Shares
 * add up to 1, so that a strategy moves the reward without changing its size. At least one token was sampled.
 */
export type RewardStrategy = (inputs: RewardStrategyInputs) => Float64Array;

/** share_t = 1 at the last sampled token, else 0. */
const giveLastToken: RewardStrategy = ({ responseMask }) => {
  const shares = new Float64Array(responseMask.length);
  let last = responseMask.length - 1;
  while (last > 0 && !responseMask[last]) last--;
  shares[last] = 1;
  return shares;
};

/** share_t = 1 / N, for N sampled tokens. */
const giveUniformly: RewardStrategy = ({ responseMask }) => normalize(responseMask, () => 1);

/** share_t = γ^(N - 1 - k_t) / Σ_k γ^k, where token t is the k_t-th of N sampled ones: later tokens get more. */
const giveLaterMore: RewardStrategy = ({ responseMask, gamma }) => {
  let sampled = 0;
  for (let t = 0; t < responseMask.length; t++) if (responseMask[t]) sampled++;
  return normalize(responseMask, (_, k) => gamma ** (sampled - 1 - k));
};

/**
 * share_t = w_t / Σ w, with w_t = toolCallWeight in a tool call and textWeight elsewhere; uniform if all weights are 0.
 */
const giveByImportance: RewardStrategy = ({ responseMask, toolCallMask, toolCallWeight, textWeight }) =>
  normalize(responseMask, (t) => (toolCallMask?.[t] ? toolCallWeight : textWeight));

/** Named by `reward_model.aggregation.strategy`. */
export const rewardStrategies = new Registry<RewardStrategy>(
  "reward strategy",
  {
    last_token: giveLastToken,
    uniform: giveUniformly,
    exponential_decay: giveLaterMore,
    importance: giveByImportance,
  },
  { subject: "reward_model.aggregation.strategy" },
);

/** Weights of the sampled tokens (by index, and by rank among the sampled), scaled to add up to 1. */
function normalize(mask: ArrayLike<number>, weigh: (t: number, rank: number) => number): Float64Array {
  const shares = new Float64Array(mask.length);
  let sum = 0;
  let rank = 0;
  for (let t = 0; t < mask.length; t++) {
    if (!mask[t]) continue;
    shares[t] = weigh(t, rank++);
    sum += shares[t]!;
  }
  if (sum === 0) return normalize(mask, () => 1);
  return shares.map((share) => share / sum);
}
