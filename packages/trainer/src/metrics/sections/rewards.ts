import type { MetricSection } from "../metric.js";

export const rewardsMetrics: MetricSection = {
  title: "Rewards and advantages",
  intro: "These metrics cover the conversations that the step learns from; failed ones are left out.",
  metrics: [
    {
      name: "critic/score/{mean,max,min}",
      unit: "reward",
      meaning: "reward of a conversation, before the KL is subtracted",
    },
    {
      name: "critic/rewards/{mean,max,min}",
      unit: "reward",
      meaning: "the same after the KL, with `algorithm.use_kl_in_reward`",
    },
    {
      name: "critic/rewards/frac_zero_std",
      unit: "share",
      meaning:
        "share of the groups whose rewards are all equal: an estimator that compares inside a group gives them no advantage",
    },
    {
      name: "reward/{score,outcome,length,tools,turns}/mean",
      unit: "reward",
      meaning:
        "parts of the reward: what was judged; that, or the reward of success and failure in its place, weighted; length penalty; step rewards of tools; scores of turns",
    },
    {
      name: "reward_part/<part>/{mean,std}",
      unit: "reward",
      meaning: "each part of the score, weighted: mean and spread over the conversations",
      when: "several parts of the score",
    },
    {
      name: "reward_extra/<key>/mean",
      meaning:
        "what a reward function, a reward manager or a reward model gave beside the score, over the conversations that have it",
    },
    { name: "critic/advantages/{mean,max,min}", meaning: "advantages of sampled tokens" },
    { name: "critic/returns/{mean,max,min}", meaning: "returns of sampled tokens; what a critic learns" },
    {
      name: "critic/anchored_turns",
      unit: "share",
      meaning: "share of the turns whose state another turn of the group answers too; at 0 it is grpo by the mean",
      when: "`adv_estimator: gigpo`",
    },
    {
      name: "critic/turn_values/mean",
      unit: "reward",
      meaning: "measured values of turns",
      when: "`adv_estimator: vine`",
    },
    {
      name: "role/<role>/<name>",
      meaning: "the metrics `actor/<name>` of the role's own updates and tokens ([self-play](self-play.md))",
      when: "an adapter for each role",
    },
    {
      name: "critic/rae/<source>/<role>/{baseline,return/mean}",
      unit: "reward",
      meaning: "each role's baseline after the step, and the mean of its returns ([self-play](self-play.md))",
      when: "`adv_estimator: rae`",
    },
    {
      name: "critic/<name>",
      meaning: "what an advantage estimator of your own reports",
      when: "`adv_estimator` of your own",
    },
  ],
};
