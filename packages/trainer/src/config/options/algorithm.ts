import { advantageEstimators, klEstimates, reweightMethods } from "@cria/algorithms";
import { z } from "zod";

/** The coefficient of the KL in the reward. */
export const klControllerOptions = z.strictObject({
  type: z
    .enum(["fixed", "adaptive"])
    .default("fixed")
    .describe("Whether the coefficient of the KL in the reward stays, or follows target_kl."),
  coefficient: z.number().min(0).default(0.001).describe("The initial coefficient."),
  targetKl: z.number().positive().default(0.1).describe("Of adaptive: the KL to hold."),
  horizon: z
    .number()
    .positive()
    .default(10_000)
    .describe("Of adaptive: conversations in which an error of 20 % changes the coefficient by about 20 %."),
});

/** Replaces groups whose rewards are all equal by fresh prompts. */
export const filterOptions = z.strictObject({
  metric: z
    .string()
    .nullable()
    .default(null)
    .describe("What is compared: seq_reward, score, or what the reward function returns beside its score (acc)."),
  maxNumGenBatches: z
    .int()
    .min(0)
    .default(0)
    .describe("Batches of prompts in one step; 0: no limit but the prompts there are."),
  minSpread: z
    .number()
    .min(0)
    .default(0)
    .describe("A group stays if its largest and smallest value differ by more than this."),
  varianceShare: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe(
      "Of the groups that stay, the step learns from those of the largest variance that together hold this share of it (RAGEN-2: 0.9); 1: from all.",
    ),
});

/** PF-PPO: updates train on conversations drawn by their scores. */
export const filtrationOptions = z.strictObject({
  method: z
    .enum(reweightMethods)
    .default("pow")
    .describe("By the power of scores, the best and worst alone, or the best more often than all others."),
  weightPow: z.number().default(2).describe("Of pow: the power."),
});

/** Groups of earlier steps that later steps train on again. */
export const replayOptions = z.strictObject({
  size: z.int().positive().default(256).describe("Most groups in the buffer; the oldest go first."),
  maxAge: z.int().positive().default(4).describe("Steps after which a group is not replayed any more."),
  share: z
    .number()
    .min(0)
    .max(8)
    .default(0)
    .describe(
      "Groups that a step learns from again, in shares of its own: 0.5 is half as many. 0: none, and no buffer (docs/algorithm-settings.md).",
    ),
  sampling: z
    .enum(["uniform", "newest", "by_variance"])
    .default("uniform")
    .describe("Which ones: drawn by the seed, the newest, or those whose rewards vary most."),
});

export type ReplayOptions = z.infer<typeof replayOptions>;

/** Advantage estimation and its rewards. */
export const algorithmOptions = z.strictObject({
  advantages: z.string().default("grpo").meta({
    description: 'How advantages are computed: a registered estimator, or "./module.ts#export".',
    examples: advantageEstimators.names(),
  }),
  normalizeByStd: z
    .boolean()
    .default(true)
    .describe("Of grpo: divide by the standard deviation of a group's rewards; false: as Dr. GRPO."),
  gamma: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("Discount of later rewards, for each token in between; of gigpo for each turn."),
  lam: z.number().min(0).max(1).default(1).describe("Of gae: its lambda."),
  useKlInReward: z.boolean().default(false).describe("Subtract the KL to the reference policy from the reward."),
  klPenalty: z.string().default("kl").meta({ description: "How that KL is estimated.", examples: klEstimates.names() }),
  klController: klControllerOptions.prefault({}),
  /** Null: all groups are kept. */
  filterGroups: filterOptions.nullable().default(null),
  gdpoRewardKeys: z
    .array(z.string())
    .nonempty()
    .nullable()
    .default(null)
    .describe("Of gdpo: the parts of the reward, each score or a number that the reward function returns beside it."),
  gdpoRewardWeights: z
    .array(z.number())
    .nullable()
    .default(null)
    .describe("Of gdpo: a weight for each of gdpo_reward_keys; null: 1."),
  gigpoMode: z
    .enum(["mean_norm", "mean_std_norm"])
    .default("mean_norm")
    .describe("Of gigpo: rewards and returns less their mean, or also divided by their standard deviation."),
  stepAdvantageWeight: z
    .number()
    .min(0)
    .default(1)
    .describe("Of gigpo: weight of a turn's advantage beside its episode's."),
  turnAdvantageWeight: z
    .number()
    .min(0)
    .default(1)
    .describe("Of mt_grpo: weight of the advantage of a turn's own rewards beside the outcome's."),
  /** Null: updates train on all conversations. */
  filtration: filtrationOptions.nullable().default(null),
  /** Null: steps train only on their own groups. */
  replay: replayOptions.nullable().default(null),
});

export type AlgorithmOptions = z.infer<typeof algorithmOptions>;
