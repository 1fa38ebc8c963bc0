import type { AdvantageInputs } from "./advantage-estimator.js";
import { carryBack } from "./carry-back.js";

/**
 * G_t = r_t + gamma G_next over sampled tokens; tokens in between (tools, users) neither earn nor discount. At a
 * branching point, G_next is the mean over the paths. 0 where the mask is 0.
 */
export function discountReturns(inputs: AdvantageInputs, gamma: number): Float64Array {
  const returns = new Float64Array(inputs.responseMask.length);
  carryBack(inputs, 1, (t, reward, state) => {
    state[0] = reward + gamma * state[0]!;
    returns[t] = state[0]!;
  });
  return returns;
}
