import { ConfigError } from "@cria/core";
import { evaluateTokens } from "./evaluate-tokens.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Direct reward optimisation (Richemond et al. 2024, arXiv:2405.19107; as a policy loss Kimi Team 2025,
 * arXiv:2501.12599): -A logprob + droBeta / 2 (log r)^2. The quadratic term keeps the policy near the old one, instead
 * of clipping; it has a gradient even if the advantage is 0.
 * @throws ConfigError without droBeta.
 */
export const droLoss: PolicyLoss = {
  evaluate(inputs, { droBeta }) {
    if (droBeta === null) {
      throw new ConfigError("needs the weight of its penalty", {
        code: "config/bad-value",
        subject: 'actor_rollout_ref.actor.policy_loss.loss_mode "dro"',
        expected: "policy_loss.dro_beta of at least 0",
        received: "null",
        remedy: "set it; 0.05 is usual",
      });
    }
    return evaluateTokens(inputs, [], ({ logprob, logRatio, isWithinClamp, advantage }) => ({
      loss: -advantage * logprob + (droBeta / 2) * logRatio * logRatio,
      gradient: -advantage + (isWithinClamp ? droBeta * logRatio : 0),
    }));
  },
};
