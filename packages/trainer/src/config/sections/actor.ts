import { aggregations, klEstimates, policyLosses } from "@cria/algorithms";
import { policyLossParameters, policyLossTerms } from "@cria/algorithms/schemas";
import { z } from "zod";
import { lossWeightOptions } from "../options/loss-weights.js";
import { updateOptions } from "../options/updates.js";
import { makeOptimizer } from "./optimizer.js";

const { shape: parameters } = policyLossParameters;
const { shape: terms } = policyLossTerms;
const { shape: updates } = updateOptions;
const { shape: weights } = lossWeightOptions;

const policyLoss = z.strictObject({
  loss_mode: z.string().default("vanilla").meta({
    description:
      'The policy loss: a registered one, or "./module.ts#export". With bypass_mode, algorithm.rollout_correction.loss_type chooses the loss.',
    examples: policyLosses.names(),
  }),
  clip_cov_ratio: parameters.clipCovRatio,
  clip_cov_lb: parameters.clipCovLb,
  clip_cov_ub: parameters.clipCovUb,
  kl_cov_ratio: parameters.klCovRatio,
  ppo_kl_coef: parameters.ppoKlCoef,
  dro_beta: parameters.droBeta,
});

export const actorSection = z.strictObject({
  optim: makeOptimizer(updates),
  ppo_mini_batch_size: updates.miniBatchSize,
  ppo_max_token_len: updates.microBatchTokens,
  ppo_epochs: updates.epochs,
  shuffle: updates.shuffle,
  clip_ratio: z
    .number()
    .positive()
    .default(0.2)
    .describe("Clip range of a token's probability ratio: from 1 minus this to 1 plus this."),
  clip_ratio_low: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe("Clip range below 1: from 1 minus this; null: clip_ratio."),
  clip_ratio_high: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("Clip range above 1: to 1 plus this; null: clip_ratio."),
  clip_ratio_c: parameters.clipRatioC,
  loss_agg_mode: z
    .string()
    .default("token-mean")
    .meta({ description: "Aggregation of the tokens' losses into one loss.", examples: aggregations.names() }),
  loss_scale_factor: terms.lossScaleFactor,
  entropy_coeff: terms.entropyCoeff,
  observation_coeff: terms.observationCoeff,
  demonstration_coeff: terms.demonstrationCoeff,
  loss_terms: z
    .record(
      z.string().min(1).max(100),
      z.strictObject({
        term: z
          .string()
          .describe('A term of your own, an object with evaluate(): a registered one, or "./module.ts#export".'),
        coefficient: z.number().default(1).describe("Its weight in the loss; 0: it is only measured."),
      }),
    )
    .default({})
    .describe("Further terms of the loss, by names of your own: docs/loss-terms.md."),
  loss_weights: z.strictObject({ key: weights.key, rows: weights.rows }).prefault({}),
  skip_zero_advantage: updates.skipZeroAdvantage,
  old_log_prob: updates.oldLogprobs,
  update_kl_ratio: updates.updateKlRatio,
  use_kl_loss: z.boolean().default(false).describe("Add the KL to the reference policy to the loss."),
  kl_loss_coef: z.number().default(0.001).describe("Weight of that KL."),
  kl_loss_type: z
    .string()
    .default("low_var_kl")
    .meta({ description: "Estimator of that KL.", examples: klEstimates.names() }),
  grad_clip: updates.maxGradNorm,
  policy_loss: policyLoss.prefault({}),
  tau_pos: parameters.tauPos,
  tau_neg: parameters.tauNeg,
});
