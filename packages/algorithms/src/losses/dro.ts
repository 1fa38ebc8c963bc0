import { evaluateTokens } from "./evaluate-tokens.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Direct reward optimisation (Richemond et al. 2024, arXiv:2405.19107; as a policy loss Kimi Team 2025, arXiv:2501.12599):
 * -A logprob + droBeta / 2 (log r)^2. The quadratic term holds the policy near the old one, instead of clipping; it has a
 * gradient where the advantage is 0, too.
 */
export const droLoss: PolicyLoss = {
  requires: ["droBeta"],
  ofRatios: ["droBeta"],
  evaluate(inputs, { droBeta }) {
    // `composePolicyLoss` refuses a loss without it.
    const weight = droBeta!;
    return evaluateTokens(inputs, [], ({ logprob, logRatio, isWithinClamp, advantage }) => ({
      loss: -advantage * logprob + (weight / 2) * logRatio * logRatio,
      gradient: -advantage + (isWithinClamp ? weight * logRatio : 0),
    }));
  },
};
