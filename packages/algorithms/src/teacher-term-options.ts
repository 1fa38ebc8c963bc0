import { z } from "zod";
import { klEstimates } from "./kl.js";
import { teacherTermDefaults as usual } from "./losses/policy-loss-defaults.js";
import { policyLosses } from "./losses/policy-losses.js";

/** Options of the loss term of a teacher. Configs name them in `distillation.distillation_loss`. */
export const teacherTermOptions = z.strictObject({
  estimate: z.string().default(usual.estimate).meta({
    description:
      "How the divergence from the teacher is estimated at each token. k3 pulls towards all that the teacher does (forward KL); k1 with use_policy_gradient drops what it would not do (reverse KL).",
    examples: klEstimates.names(),
  }),
  coefficient: z
    .number()
    .min(0)
    .default(usual.coefficient)
    .describe("Weight of the teacher's term beside the task's loss."),
  taskRewards: z
    .boolean()
    .default(usual.taskRewards)
    .describe("Whether the task's rewards train too; false: the teacher alone, and its weight is 1."),
  policyGradient: z
    .boolean()
    .default(usual.policyGradient)
    .describe("Minus the divergence is an advantage of each token; false: the estimate itself is differentiated."),
  lossMode: z.string().default(usual.lossMode).meta({
    description: "Of use_policy_gradient: the policy loss that learns from these advantages.",
    examples: policyLosses.names(),
  }),
  clipRatioLow: z
    .number()
    .min(0)
    .default(usual.clipRatioLow)
    .describe(
      "Of use_policy_gradient: ratios below 1 minus this are clipped; the actor's own clips do not count here.",
    ),
  clipRatioHigh: z
    .number()
    .positive()
    .default(usual.clipRatioHigh)
    .describe("Of use_policy_gradient: ratios above 1 plus this are clipped."),
  maxLoss: z
    .number()
    .positive()
    .nullable()
    .default(usual.maxLoss)
    .describe("A token's divergence is cut off at plus and minus this. null: never."),
  minLogprob: z
    .number()
    .max(0)
    .nullable()
    .default(usual.minLogprob)
    .describe("Logprobs of policy and teacher below this count as this. null: all count as they are."),
});

export type TeacherTermValues = z.infer<typeof teacherTermOptions>;
