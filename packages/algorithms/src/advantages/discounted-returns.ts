import type { AdvantageInputs } from "./advantage-estimator.js";

/**
 * G_t = r_t + gamma G_next over sampled tokens; tokens in between (tools, users) neither earn nor discount. 0 where the
 * mask is 0.
 */
export function discountReturns(inputs: AdvantageInputs, gamma: number): Float64Array {
  const { tokenLevelRewards, responseMask, offsets } = inputs;
  const returns = new Float64Array(responseMask.length);
  for (let i = 0; i + 1 < offsets.length; i++) {
    let running = 0;
    for (let t = offsets[i + 1]! - 1; t >= offsets[i]!; t--) {
      if (!responseMask[t]) continue;
      running = tokenLevelRewards[t]! + gamma * running;
      returns[t] = running;
    }
  }
  return returns;
}
