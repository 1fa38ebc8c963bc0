import { join } from "node:path";

export const toolChoiceFolder = join(import.meta.dirname, "..", "examples", "tool-choice");

/** Settings that turn the example's config into plain GRPO, by a reward that right calls are a part of. */
export const toolChoiceByGrpo = [
  "algorithm.adv_estimator=grpo",
  "custom_reward_function.name=score",
  "actor_rollout_ref.actor.policy_loss.loss_mode=vanilla",
  "actor_rollout_ref.actor.optim.lr=1e-4",
  "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
];
