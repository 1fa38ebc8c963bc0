import { advantageEstimators, klEstimates, reweightMethods } from "@cria/algorithms";
import { groupSamplers } from "@cria/rollout";
import { z } from "zod";

/** The coefficient of the KL in the reward. */
export const klControllerOptions = z.strictObject({
  type: z
    .enum(["fixed", "adaptive"])
    .default("fixed")
    .describe("fixed keeps the coefficient of the KL in the reward; adaptive moves it to hold target_kl."),
  coefficient: z.number().min(0).default(0.001).describe("The initial coefficient."),
  targetKl: z.number().positive().default(0.1).describe("KL that the adaptive controller holds."),
  horizon: z
    .number()
    .positive()
    .default(10_000)
    .describe(
      "Number of conversations after which the adaptive controller has changed the coefficient by about 20 %, at an error of 20 %.",
    ),
});

/** Replaces groups whose rewards are all equal by fresh prompts. */
export const filterOptions = z.strictObject({
  metric: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "The number to compare: seq_reward, score, or the name of another number that the reward function returns (acc).",
    ),
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
    .describe(
      "pow draws conversations by a power of their absolute scores; max_min draws only the best and the worst; max_random draws the best more often.",
    ),
  weightPow: z.number().default(2).describe("Exponent of absolute scores with pow."),
});

/** Measured values of turns. */
export const turnValueOptions = z.strictObject({
  continuations: z
    .int()
    .min(1)
    .default(4)
    .describe(
      "With vine: conversations that go on from the end of each turn, to measure its value by their mean reward. They are judged, and not trained on.",
    ),
  maxTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe("With vine: most tokens that such a conversation adds. null: the rest of the response."),
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
      "Number of replayed groups per step, relative to its own groups: 0.5 adds half as many. 0: no replay and no buffer (docs/algorithm-settings.md).",
    ),
  sampling: z.string().default("uniform").meta({
    description:
      'Choice of the replayed groups. uniform: drawn by the seed; newest; by_variance: those whose rewards vary most; "./module.ts#export": by a class or function of yours (docs/algorithm-settings.md).',
    examples: groupSamplers.names(),
  }),
  samplingKwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("Options of a class or function of yours that chooses the replayed groups."),
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
    .describe(
      "With grpo: divide advantages by the standard deviation of the group's rewards. false: do not divide, as Dr. GRPO.",
    ),
  gamma: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("Discount of later rewards, for each token in between; of gigpo for each turn."),
  lam: z.number().min(0).max(1).default(1).describe("Lambda of gae."),
  useKlInReward: z.boolean().default(false).describe("Subtract the KL to the reference policy from the reward."),
  klPenalty: z.string().default("kl").meta({ description: "Estimator of that KL.", examples: klEstimates.names() }),
  klController: klControllerOptions.prefault({}),
  /** Null: all groups are kept. */
  filterGroups: filterOptions.nullable().default(null),
  gdpoRewardKeys: z
    .array(z.string())
    .nonempty()
    .nullable()
    .default(null)
    .describe(
      "With gdpo: names of the parts of the reward. Each is score, or another number that the reward function returns.",
    ),
  gdpoRewardWeights: z
    .array(z.number())
    .nullable()
    .default(null)
    .describe("With gdpo: one weight for each of gdpo_reward_keys. null: each weight is 1."),
  gigpoMode: z
    .enum(["mean_norm", "mean_std_norm"])
    .default("mean_norm")
    .describe(
      "With gigpo: mean_norm subtracts the mean of rewards and returns; mean_std_norm also divides by their standard deviation.",
    ),
  stepAdvantageWeight: z
    .number()
    .min(0)
    .default(1)
    .describe("With gigpo: weight of a turn's advantage; the episode's advantage has weight 1."),
  turnAdvantageWeight: z
    .number()
    .min(0)
    .default(1)
    .describe(
      "With mt_grpo: weight of the advantage from a turn's own rewards; the advantage from the outcome has weight 1.",
    ),
  raeDecay: z
    .number()
    .min(0)
    .lt(1)
    .default(0.95)
    .describe("With rae: weight of a role's earlier baseline when a return of the role moves it."),
  turnValues: turnValueOptions.prefault({}),
  /** Null: updates train on all conversations. */
  filtration: filtrationOptions.nullable().default(null),
  /** Null: steps train only on their own groups. */
  replay: replayOptions.nullable().default(null),
});

export type AlgorithmOptions = z.infer<typeof algorithmOptions>;
