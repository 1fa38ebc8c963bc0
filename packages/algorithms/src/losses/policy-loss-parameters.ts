import { z } from "zod";
import { parameterDefaults, termDefaults } from "./policy-loss-defaults.js";

/** Parameters of all losses: each loss reads its own. Configs name them in `actor` and `actor.policy_loss`. */
export const policyLossParameters = z.strictObject({
  clipRatioLow: z
    .number()
    .min(0)
    .default(parameterDefaults.clipRatioLow)
    .describe("Ratios below 1 minus this are clipped; of geo_mean log-ratios; of dppo: divergences above it."),
  clipRatioHigh: z
    .number()
    .positive()
    .default(parameterDefaults.clipRatioHigh)
    .describe("Ratios above 1 plus this are clipped; of geo_mean log-ratios; of dppo: divergences above it."),
  clipRatioC: z
    .number()
    .gt(1)
    .default(parameterDefaults.clipRatioC)
    .describe("Dual-clip PPO: maximum ratio where the advantage is negative."),
  clipCovRatio: z
    .number()
    .gt(0)
    .max(1)
    .default(parameterDefaults.clipCovRatio)
    .describe("With clip_cov: share of tokens without a gradient."),
  clipCovLb: z
    .number()
    .default(parameterDefaults.clipCovLb)
    .describe("With clip_cov: lowest covariance of a token that may lose its gradient."),
  clipCovUb: z
    .number()
    .default(parameterDefaults.clipCovUb)
    .describe("With clip_cov: highest covariance of a token that may lose its gradient."),
  klCovRatio: z
    .number()
    .gt(0)
    .max(1)
    .default(parameterDefaults.klCovRatio)
    .describe("With kl_cov: share of tokens with a KL penalty, those of the highest covariance."),
  ppoKlCoef: z.number().min(0).default(parameterDefaults.ppoKlCoef).describe("With kl_cov: weight of that KL."),
  droBeta: z
    .number()
    .min(0)
    .nullable()
    .default(parameterDefaults.droBeta)
    .describe("With dro, which has no default for it: weight of the squared log-ratio, for example 0.05."),
  tauPos: z
    .number()
    .positive()
    .default(parameterDefaults.tauPos)
    .describe("With the loss sapo: temperature where the advantage is above 0."),
  tauNeg: z
    .number()
    .positive()
    .default(parameterDefaults.tauNeg)
    .describe("With the loss sapo: temperature elsewhere."),
});

export type PolicyLossParameters = z.infer<typeof policyLossParameters>;

/** Numbers of every loss beside its parameters. */
export const policyLossTerms = z.strictObject({
  lossScaleFactor: z
    .number()
    .positive()
    .nullable()
    .default(termDefaults.lossScaleFactor)
    .describe("Divisor of seq-mean-token-sum-norm; null: the longest response allowed."),
  entropyCoeff: z.number().default(termDefaults.entropyCoeff).describe("Weight of the entropy bonus; 0: none."),
  observationCoeff: z
    .number()
    .min(0)
    .default(termDefaults.observationCoeff)
    .describe(
      "Weight of the cross-entropy of tools' answers: the policy learns to predict them too (ECHO); 0: none, 0.1 is usual.",
    ),
  demonstrationCoeff: z
    .number()
    .min(0)
    .default(termDefaults.demonstrationCoeff)
    .describe(
      "Weight of the cross-entropy of demonstrations, conversations that every update also learns to repeat: data.demonstrations.files; 0: none.",
    ),
});

export type PolicyLossTerms = z.infer<typeof policyLossTerms>;
