import type { MetricSection } from "../metric.js";

export const samplerMetrics: MetricSection = {
  title: "Sampler and training graph",
  intro:
    "How far the probabilities of the sampler are from those that the training graph recomputes, for the same weights. All of these, and `actor/entropy`, are about the tokens that were evaluated: those of conversations with an advantage, unless a term of the loss, a rejection or `actor.skip_zero_advantage: false` asks for all. `training/evaluated_ratio` says how many that is. With `bypass_mode` `training/*` do not exist, and `rollout_corr/*` compare the sampler with the policy in the update: means over the updates, without extremes and spreads.",
  metrics: [
    {
      name: "training/evaluated_ratio",
      unit: "share",
      meaning: "share of the sampled tokens whose logprobs were recomputed",
    },
    {
      name: "training/old_log_prob_pass",
      unit: "0 or 1",
      meaning:
        "1 where old logprobs took a forward pass of their own, 0 where the update's own pass or the sampler gave them",
    },
    {
      name: "training/old_log_prob_diff_max",
      unit: "nats",
      meaning: "the greatest difference of a logprob between that pass and the update's",
      when: "`actor.old_log_prob: compare`",
    },
    {
      name: "training/rollout_probs_diff_{mean,max,std}",
      unit: "probability",
      meaning:
        "absolute difference of a sampled token's probability by sampler and trainer (0 on most CPUs); unbiased spread",
    },
    {
      name: "training/rollout_probs_diff_valid",
      unit: "0 or 1",
      meaning: "1 where anything was compared, 0 where nothing was evaluated",
    },
    {
      name: "training/rollout_actor_probs_pearson_corr",
      meaning: "correlation of the two probabilities over sampled tokens",
    },
    { name: "rollout_corr/{kl,k3_kl}", unit: "nats", meaning: "KL(sampler, training graph) by k1 and k3" },
    {
      name: "rollout_corr/{training_log_ppl,rollout_log_ppl}",
      unit: "nats",
      meaning: "mean over conversations of minus the mean logprob",
    },
    { name: "rollout_corr/{training_ppl,rollout_ppl}", meaning: "mean over conversations of the perplexity" },
    {
      name: "rollout_corr/{log_ppl_diff,log_ppl_abs_diff,log_ppl_diff_max,log_ppl_diff_min}",
      unit: "nats",
      meaning: "log perplexity of the training graph less that of the sampler: mean, mean absolute value, extremes",
    },
    { name: "rollout_corr/ppl_ratio", meaning: "mean over conversations of the quotient of both perplexities" },
    {
      name: "rollout_corr/{chi2_token,chi2_seq}",
      meaning: "chi-squared divergence: mean squared ratio - 1, of tokens and of conversations",
    },
    {
      name: "rollout_corr/rollout_is_{mean,std,max,min}",
      meaning: "importance weights that are used, before they are normalised",
      when: "`rollout_is`",
    },
    {
      name: "rollout_corr/rollout_is_seq_{mean,std,max,min,max_deviation}",
      meaning: "of each conversation's mean weight; the largest distance from 1",
      when: "`rollout_is`",
    },
    {
      name: "rollout_corr/{rollout_is_ratio_fraction_high,rollout_is_ratio_fraction_low}",
      unit: "share",
      meaning: "share of the tokens whose ratio is above the threshold, and below its inverse or the lower one",
      when: "`rollout_is`",
    },
    {
      name: "rollout_corr/{rollout_is_seq_fraction_high,rollout_is_seq_fraction_low}",
      unit: "share",
      meaning: "the same of conversations, by their mean ratio",
      when: "`rollout_is`",
    },
    {
      name: "rollout_corr/rollout_is_eff_sample_size",
      meaning: "mean(w)² / mean(w²) of the weights that are used; 1: all are equal",
      when: "`rollout_is`",
    },
    {
      name: "rollout_corr/rollout_is_batch_norm_factor",
      meaning: "the mean that weights were divided by",
      when: "`rollout_is_batch_normalize`",
    },
    {
      name: "rollout_corr/{rollout_rs_masked_fraction,rollout_rs_seq_masked_fraction}",
      unit: "share",
      meaning: "share of tokens that were rejected, and of conversations that lost any",
      when: "`rollout_rs`",
    },
    {
      name: "rollout_corr/rollout_is_veto_fraction",
      unit: "share",
      meaning: "share of conversations that were vetoed",
      when: "`rollout_token_veto_threshold`",
    },
    {
      name: "rollout_corr/rollout_is_catastrophic_token_fraction",
      unit: "share",
      meaning: "share of tokens below that threshold",
      when: "`rollout_token_veto_threshold`",
    },
  ],
};
