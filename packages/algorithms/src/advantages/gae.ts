import { ConfigError } from "@cria/core";
import { maskedVariance, maskedWhiten } from "../masked.js";
import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { carryBack } from "./carry-back.js";

/**
 * Generalized advantage estimation (Schulman et al. 2015, arXiv:1506.02438) over sampled tokens: delta_t = r_t +
 * gamma V_next - V_t, A_t = delta_t + gamma lam A_next, returns = A + V; then A is whitened over the mask. A masked
 * token passes V_next and A_next through, so that a tool's text costs neither discount nor a value. At a branching
 * point they are means over the paths (`carryBack`).
 * Metric `vf_explained_var` = 1 - Var(returns - values) / (Var(returns) + 1e-5).
 * @throws ConfigError without `values`.
 */
export const estimateGae: AdvantageEstimator = Object.assign(estimate, { needs: ["values"] as const });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { responseMask, values, gamma = 1, lam = 1 } = inputs;
  if (!values) {
    throw new ConfigError("needs a critic: it is made of the values of each token", {
      code: "config/needs-critic",
      subject: 'algorithm.adv_estimator "gae"',
      expected: "values",
      received: "none",
      remedy: "configure a critic, or use an estimator without one (grpo, rloo, reinforce_plus_plus, ...)",
    });
  }
  const advantages = new Float64Array(responseMask.length);
  const returns = new Float32Array(responseMask.length);
  /** State: V_next and A_next. */
  carryBack(inputs, 2, (t, reward, state) => {
    const delta = reward + gamma * state[0]! - values[t]!;
    state[1] = delta + gamma * lam * state[1]!;
    state[0] = values[t]!;
    advantages[t] = state[1]!;
    returns[t] = state[1]! + state[0]!;
  });
  const metrics = { vf_explained_var: explainVariance(values, returns, responseMask) };
  return { advantages: Float32Array.from(maskedWhiten(advantages, responseMask)), returns, metrics };
}

/** Share of the returns' variance that the values explain: 1 is perfect, 0 as good as a constant, below 0 worse. */
export function explainVariance(
  values: ArrayLike<number>,
  returns: ArrayLike<number>,
  mask: ArrayLike<number>,
): number {
  const errors = Float64Array.from(returns, (value, t) => value - values[t]!);
  return 1 - maskedVariance(errors, mask) / (maskedVariance(returns, mask) + 1e-5);
}
