import { advantageEstimators, klEstimates, reweightMethods } from "@cria/algorithms";
import { z } from "zod";

const klController = z.strictObject({
  type: z
    .enum(["fixed", "adaptive"])
    .default("fixed")
    .describe("Whether the coefficient of the KL in the reward stays, or follows target_kl."),
  kl_coef: z.number().min(0).default(0.001).describe("The initial coefficient."),
  target_kl: z.number().positive().default(0.1).describe("Of adaptive: the KL to hold."),
  horizon: z
    .number()
    .positive()
    .default(10_000)
    .describe("Of adaptive: conversations in which an error of 20 % changes the coefficient by about 20 %."),
});

const filterGroups = z.strictObject({
  enable: z.boolean().default(false).describe("Groups whose rewards are all equal make room for fresh prompts (DAPO)."),
  metric: z
    .string()
    .nullable()
    .default(null)
    .describe("What is compared: seq_reward, score, or what the reward function returns beside its score (acc)."),
  max_num_gen_batches: z
    .int()
    .min(0)
    .default(0)
    .describe("Batches of prompts in one step; 0: no limit but the prompts there are."),
});

const rolloutCorrection = z.strictObject({
  rollout_is: z
    .enum(["token", "sequence"])
    .nullable()
    .default(null)
    .describe(
      "Weigh the loss by the ratio of training graph and sampler, of each token or of the sequence; null: do not.",
    ),
  rollout_is_threshold: z
    .union([
      z.number().positive(),
      z.string().regex(/^[\d.eE+-]+(_[\d.eE+-]+)?$/, 'a number, or "lower_upper", for example "0.5_5.0"'),
    ])
    .default(2)
    .describe('Where weights are cut off. "lower_upper", as "0.5_5.0": weights outside are 0 (IcePop).'),
  rollout_rs: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "What is rejected: token, seq_sum, seq_mean or seq_max, and by which estimate of the KL between sampler and training graph, k1, k2 or k3: token_k1, seq_sum_k1, seq_mean_k3, seq_max_k2, ... Several with commas in between. token, sequence and geometric are token_k1, seq_sum_k1 and seq_mean_k1, with bounds of the inverse ratio.",
    ),
  rollout_rs_threshold: z
    .union([z.number(), z.string()])
    .nullable()
    .default(null)
    .describe(
      'One for each of rollout_rs, with commas in between, or one for all. Of k1: "lower_upper", as "0.5_2.0", bounds of the ratio sampler / training graph; a number x for 1/x to x; null: 2. Of k2 and k3: the upper bound.',
    ),
  rollout_rs_threshold_lower: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("Beside one number in rollout_rs_threshold: the lower bound."),
  rollout_is_batch_normalize: z
    .boolean()
    .default(false)
    .describe("Weights are divided by their mean, once they are cut off."),
  rollout_token_veto_threshold: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("A sequence with a token whose ratio is below this is rejected; null: none is."),
  bypass_mode: z
    .boolean()
    .default(false)
    .describe(
      "The sampler's logprobs are the old logprobs: one forward pass less. Weights and rejections are then made in the loss.",
    ),
  loss_type: z
    .enum(["ppo_clip", "reinforce"])
    .default("ppo_clip")
    .describe(
      "Of bypass_mode. ppo_clip: the loss of loss_mode, whose ratio stands for rollout_is. reinforce: -A logprob, weighted by rollout_is.",
    ),
});

const policyFiltration = z.strictObject({
  reweight_method: z
    .enum(reweightMethods)
    .default("pow")
    .describe("By the power of scores, the best and worst alone, or the best more often than all others."),
  weight_pow: z.number().default(2).describe("Of pow: the power."),
});

export const algorithmSection = z.strictObject({
  adv_estimator: z.string().default("grpo").meta({
    description: 'How advantages are computed: a registered estimator, or "./module.ts#export".',
    examples: advantageEstimators.names(),
  }),
  norm_adv_by_std_in_grpo: z
    .boolean()
    .default(true)
    .describe("Of grpo: divide by the standard deviation of a group's rewards; false: as Dr. GRPO."),
  gamma: z.number().min(0).max(1).default(1).describe("Discount of later rewards."),
  lam: z.number().min(0).max(1).default(1).describe("Of gae: its lambda."),
  use_kl_in_reward: z.boolean().default(false).describe("Subtract the KL to the reference policy from the reward."),
  kl_penalty: z
    .string()
    .default("kl")
    .meta({ description: "How that KL is estimated.", examples: klEstimates.names() }),
  kl_ctrl: klController.prefault({}),
  filter_groups: filterGroups.prefault({}),
  rollout_correction: rolloutCorrection.prefault({}),
  gdpo_reward_keys: z
    .array(z.string())
    .nonempty()
    .nullable()
    .default(null)
    .describe("Of gdpo: the parts of the reward, each score or a number that the reward function returns beside it."),
  gdpo_reward_weights: z
    .array(z.number())
    .nullable()
    .default(null)
    .describe("Of gdpo: a weight for each of gdpo_reward_keys; null: 1."),
  use_pf_ppo: z
    .boolean()
    .default(false)
    .describe(
      "Updates train on a sample of the conversations of the same size, drawn with replacement by their scores (PF-PPO).",
    ),
  pf_ppo: policyFiltration.prefault({}),
});
