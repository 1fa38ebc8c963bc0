import { ConfigError } from "@cria/core";
import { clampLogRatio, isWithinClamp } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Direct reward optimisation (Richemond et al. 2024, arXiv:2405.19107; as a policy loss Kimi Team 2025, arXiv:2501.12599):
 * -A logprob + droBeta / 2 (log r)^2. The quadratic term holds the policy near the old one, instead of clipping; it has a
 * gradient where the advantage is 0, too.
 * @throws ConfigError without droBeta.
 */
export const droLoss: PolicyLoss = {
  evaluate({ logprobs, oldLogprobs, advantages }, { droBeta }) {
    if (droBeta === null) {
      throw new ConfigError("needs the weight of its penalty", {
        code: "config/bad-value",
        subject: 'actor_rollout_ref.actor.policy_loss.loss_mode "dro"',
        expected: "policy_loss.dro_beta of at least 0",
        received: "null",
        remedy: "set it; 0.05 is usual",
      });
    }
    const n = logprobs.length;
    const losses = new Float64Array(n);
    const gradients = new Float64Array(n);
    const ppo_kl = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const logRatio = clampLogRatio(logprobs[i]!, oldLogprobs[i]!);
      const pull = isWithinClamp(logprobs[i]!, oldLogprobs[i]!) ? droBeta * logRatio : 0;
      losses[i] = -advantages[i]! * logprobs[i]! + (droBeta / 2) * logRatio * logRatio;
      gradients[i] = -advantages[i]! + pull;
      ppo_kl[i] = -logRatio;
    }
    return { losses, gradients, metrics: { ppo_kl } };
  },
};
