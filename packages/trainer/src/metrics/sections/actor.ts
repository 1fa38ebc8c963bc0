import type { MetricSection } from "../metric.js";

export const actorMetrics: MetricSection = {
  title: "Actor",
  metrics: [
    {
      name: "actor/pg_loss",
      meaning: "the policy loss, mean over the step's updates, as the other values of the loss",
    },
    {
      name: "actor/pg_clipfrac",
      unit: "share",
      meaning: "share of tokens whose ratio is clipped (clip_cov: that are left out)",
    },
    {
      name: "actor/pg_clipfrac_lower",
      unit: "share",
      meaning: "share of tokens that the dual clip holds (negative advantage, large ratio)",
    },
    {
      name: "actor/ppo_kl",
      unit: "nats",
      meaning: "mean of old logprob - logprob: KL(old policy, policy) by k1. Tokens that are left out count as 0",
    },
    {
      name: "actor/update_kl",
      unit: "nats",
      meaning:
        "how far the step's updates moved the policy: KL(before, after) by k3, mean over the sampled tokens of a share of its conversations (`actor.update_kl_ratio`), scored again",
      when: "`actor.update_kl_ratio` above 0",
    },
    {
      name: "actor/entropy",
      unit: "nats",
      meaning:
        "entropy of the distributions at sampled tokens: before the step's updates, or without a pass (`training/old_log_prob_pass` 0) before the update that learns from them first",
    },
    {
      name: "actor/kl_loss",
      unit: "nats",
      meaning: "KL to the reference in the loss, by `kl_loss_type`",
      when: "`actor.use_kl_loss`",
    },
    {
      name: "distillation/loss",
      meaning: "the teacher's part of the loss, without its coefficient",
      when: "`distillation`",
    },
    {
      name: "distillation/divergence",
      unit: "nats",
      meaning:
        "its divergence from the policy at each token, by `loss_mode` and cut off at `loss_max_clamp`: mean over the tokens in the loss",
      when: "`distillation`",
    },
    {
      name: "distillation/teacher_mass",
      unit: "probability",
      meaning:
        "probability that the teacher gives its `topk` likeliest tokens together, mean over the tokens in the loss",
      when: "`loss_mode: forward_kl_topk`",
    },
    {
      name: "distillation/student_mass",
      unit: "probability",
      meaning: "probability that the policy gives these tokens together",
      when: "`loss_mode: forward_kl_topk`",
    },
    {
      name: "distillation/corrected",
      unit: "share",
      meaning:
        "share of the step's conversations of which the reward gave a correction. 0 from the first step on: the reward returns no text of that name",
      when: "`correction_key` of a teacher",
    },
    {
      name: "distillation/guided/share",
      unit: "probability",
      meaning: "probability that the teacher samples a turn of this step",
      when: "`distillation.guided`",
    },
    {
      name: "distillation/guided/turns",
      unit: "share",
      meaning: "share of the step's turns that it sampled",
      when: "`distillation.guided`",
    },
    {
      name: "distillation/guided/left_out",
      unit: "conversations",
      meaning: "conversations of which it sampled all turns: nothing is learned from them",
      when: "`distillation.guided`",
    },
    {
      name: "actor/observation_loss",
      unit: "nats",
      meaning: "mean of -logprob over the tokens of tools' answers, without the coefficient",
      when: "`actor.observation_coeff`",
    },
    {
      name: "actor/demonstration_loss",
      unit: "nats",
      meaning: "mean of -logprob over the tokens of the update's demonstrations, without the coefficient",
      when: "`actor.demonstration_coeff`",
    },
    {
      name: "actor/loss_terms/<name>",
      meaning: "a term of your own, aggregated, without its coefficient; `/<metric>` behind it: what the term reports",
      when: "`actor.loss_terms`",
    },
    { name: "actor/kl_coef", meaning: "coefficient of that KL", when: "`actor.use_kl_loss`" },
    {
      name: "actor/reward_kl_penalty",
      unit: "nats",
      meaning: "KL to the reference in the reward, by `kl_penalty`: mean over conversations",
      when: "`algorithm.use_kl_in_reward`",
    },
    {
      name: "actor/reward_kl_penalty_coeff",
      meaning: "its coefficient, before an adaptive controller moves it",
      when: "`algorithm.use_kl_in_reward`",
    },
    {
      name: "actor/grad_norm",
      meaning: "norm of the gradient before clipping, mean over the updates",
      when: "something to learn",
    },
    { name: "actor/lr", meaning: "learning rate of the actor", when: "a step after `trainer.critic_warmup`" },
    { name: "actor/<name>", meaning: "what a policy loss of your own reports", when: "a policy loss of your own" },
  ],
};
