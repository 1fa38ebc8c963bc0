import { aggregations, klEstimates, policyLosses } from "@cria/algorithms";
import { z } from "zod";
import { makeOptimizer } from "./optimizer.js";

const policyLoss = z.strictObject({
  loss_mode: z.string().default("vanilla").meta({
    description:
      'The policy loss: a registered one, or "./module.ts#export". bypass_mode: what algorithm.rollout_correction.loss_type says.',
    examples: policyLosses.names(),
  }),
  clip_cov_ratio: z
    .number()
    .gt(0)
    .max(1)
    .default(2e-4)
    .describe("Of clip_cov: share of tokens whose gradient is cut off."),
  clip_cov_lb: z.number().default(1).describe("Of clip_cov: the lowest covariance of a token that may be cut off."),
  clip_cov_ub: z.number().default(5).describe("Of clip_cov: the highest covariance of a token that may be cut off."),
  kl_cov_ratio: z
    .number()
    .gt(0)
    .max(1)
    .default(2e-4)
    .describe("Of kl_cov: share of tokens, of the highest covariance, that the KL penalises."),
  ppo_kl_coef: z.number().min(0).default(1).describe("Of kl_cov: weight of that KL."),
  dro_beta: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe("Of dro, which must be told: weight of the squared log-ratio, 0.05 for example."),
});

export const actorSection = z.strictObject({
  optim: makeOptimizer(1e-4),
  ppo_mini_batch_size: z.int().positive().default(8).describe("Prompts in one update."),
  ppo_max_token_len: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Tokens of a micro-batch, padding included; null: chosen by model and memory. The result is the same."),
  ppo_epochs: z.int().positive().default(1).describe("Passes over a step's batch."),
  shuffle: z
    .boolean()
    .default(true)
    .describe("Shuffle the prompts of a step before each pass, so that mini-batches differ from pass to pass."),
  clip_ratio: z.number().positive().default(0.2).describe("How far a token's probability ratio counts, on both sides."),
  clip_ratio_low: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe("The same below 1: ratios under 1 - clip_ratio_low; null: clip_ratio."),
  clip_ratio_high: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("The same above 1: ratios over 1 + clip_ratio_high; null: clip_ratio."),
  clip_ratio_c: z
    .number()
    .gt(1)
    .default(3)
    .describe("Of dual-clip PPO: the largest ratio that counts where the advantage is negative."),
  loss_agg_mode: z
    .string()
    .default("token-mean")
    .meta({ description: "How the losses of tokens become one.", examples: aggregations.names() }),
  loss_scale_factor: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("Divisor of seq-mean-token-sum-norm; null: the longest response allowed."),
  entropy_coeff: z.number().default(0).describe("Weight of the entropy bonus; 0: none."),
  skip_zero_advantage: z
    .boolean()
    .default(true)
    .describe(
      "Leave conversations without advantage out of evaluation and update where they have no gradient: it is the same, and cheaper. false: as other frameworks do; actor/entropy, actor/ppo_kl, training/rollout_probs_diff_* and rollout_corr/* then cover the whole batch, and a batch without any advantage still takes an optimizer step.",
    ),
  update_kl_ratio: z
    .number()
    .min(0)
    .max(1)
    .default(1 / 16)
    .describe(
      "Share of a step's evaluated conversations that are scored again after its updates, for actor/update_kl: how far they moved the policy. At least one; 0: none. It changes nothing of the training.",
    ),
  use_kl_loss: z.boolean().default(false).describe("Add the KL to the reference policy to the loss."),
  kl_loss_coef: z.number().default(0.001).describe("Weight of that KL."),
  kl_loss_type: z
    .string()
    .default("low_var_kl")
    .meta({ description: "How that KL is estimated.", examples: klEstimates.names() }),
  grad_clip: z
    .number()
    .min(0)
    .default(1)
    .describe("Largest norm of the gradient, which is scaled down to it; 0: no limit."),
  policy_loss: policyLoss.prefault({}),
  tau_pos: z.number().positive().default(1).describe("Of the loss sapo: temperature where the advantage is above 0."),
  tau_neg: z.number().positive().default(1).describe("Of the loss sapo: temperature elsewhere."),
});
