import { z } from "zod";
import {
  algorithmOptions,
  filterOptions,
  filtrationOptions,
  klControllerOptions,
  replayOptions,
  turnValueOptions,
} from "../options/algorithm.js";

const { shape: algorithm } = algorithmOptions;
const { shape: controller } = klControllerOptions;
const { shape: filter } = filterOptions;
const { shape: filtration } = filtrationOptions;
const { shape: replayed } = replayOptions;
const { shape: measured } = turnValueOptions;

const klController = z.strictObject({
  type: controller.type,
  kl_coef: controller.coefficient,
  target_kl: controller.targetKl,
  horizon: controller.horizon,
});

const filterGroups = z.strictObject({
  enable: z.boolean().default(false).describe("Groups whose rewards are all equal make room for fresh prompts (DAPO)."),
  metric: filter.metric,
  max_num_gen_batches: filter.maxNumGenBatches,
  min_spread: filter.minSpread,
  variance_share: filter.varianceShare,
});

const rolloutCorrection = z.strictObject({
  rollout_is: z
    .enum(["token", "sequence", "none"])
    .nullable()
    .default(null)
    .describe(
      "Weigh the loss by the ratio of training graph and sampler, of each token or of the sequence; none: do not; null: of each token where steps are sampled ahead (trainer.v1), groups are replayed or rollout.kv_cache_dtype rounds, unless bypass_mode or rollout_rs correct for it, else none.",
    ),
  rollout_is_threshold: z
    .union([
      z.number().positive(),
      z.string().regex(/^[\d.eE+-]+(_[\d.eE+-]+)?$/, 'a number, or "lower_upper", for example "0.5_5.0"'),
    ])
    .default(2)
    .describe('Upper bound of the weights. "lower_upper", as "0.5_5.0": weights outside are 0 (IcePop).'),
  rollout_rs: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "Rules of rejection. Each names a unit (token, seq_sum, seq_mean or seq_max) and an estimate of the KL between sampler and training graph (k1, k2 or k3): token_k1, seq_sum_k1, seq_mean_k3, seq_max_k2, ... Commas separate several rules. token, sequence and geometric are token_k1, seq_sum_k1 and seq_mean_k1, with bounds of the inverse ratio.",
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
      "Loss with bypass_mode. ppo_clip: the loss of loss_mode, whose ratio replaces rollout_is. reinforce: -A logprob, weighted by rollout_is.",
    ),
});

const policyFiltration = z.strictObject({
  reweight_method: filtration.method,
  weight_pow: filtration.weightPow,
});

const replay = z.strictObject({
  size: replayed.size,
  max_age: replayed.maxAge,
  share: replayed.share,
  sampling: replayed.sampling,
  sampling_kwargs: replayed.samplingKwargs,
});

const gigpo = z.strictObject({
  mode: algorithm.gigpoMode,
  step_advantage_w: algorithm.stepAdvantageWeight,
});

const vine = z.strictObject({
  continuations: measured.continuations,
  max_tokens: measured.maxTokens,
});

export const algorithmSection = z.strictObject({
  adv_estimator: algorithm.advantages,
  norm_adv_by_std_in_grpo: algorithm.normalizeByStd,
  gamma: algorithm.gamma,
  lam: algorithm.lam,
  use_kl_in_reward: algorithm.useKlInReward,
  kl_penalty: algorithm.klPenalty,
  kl_ctrl: klController.prefault({}),
  filter_groups: filterGroups.prefault({}),
  rollout_correction: rolloutCorrection.prefault({}),
  gdpo_reward_keys: algorithm.gdpoRewardKeys,
  gdpo_reward_weights: algorithm.gdpoRewardWeights,
  gigpo: gigpo.prefault({}),
  turn_advantage_coef: algorithm.turnAdvantageWeight,
  rae_decay: algorithm.raeDecay,
  vine: vine.prefault({}),
  use_pf_ppo: z
    .boolean()
    .default(false)
    .describe(
      "Updates train on a sample of the conversations of the same size, drawn with replacement by their scores (PF-PPO).",
    ),
  pf_ppo: policyFiltration.prefault({}),
  replay: replay.prefault({}),
});
