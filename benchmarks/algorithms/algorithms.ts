/** Each algorithm's changes of `examples/calculator/config.yaml`; everything else is the same for all. */
export const algorithms: Record<string, readonly string[]> = {
  GRPO: ["algorithm.adv_estimator=grpo"],
  "Dr. GRPO": [
    "algorithm.adv_estimator=grpo",
    "algorithm.norm_adv_by_std_in_grpo=false",
    "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm",
  ],
  RLOO: ["algorithm.adv_estimator=rloo"],
  "REINFORCE++": ["algorithm.adv_estimator=reinforce_plus_plus"],
  GSPO: [
    "algorithm.adv_estimator=grpo",
    "actor_rollout_ref.actor.policy_loss.loss_mode=gspo",
    "actor_rollout_ref.actor.clip_ratio=0.05",
  ],
  PPO: ["algorithm.adv_estimator=gae", "trainer.critic_warmup=5"],
};

export const seeds = [1, 2, 3] as const;
