import { z } from "zod";
import { FORWARD_KL_TOPK } from "./forward-kl-topk.js";
import { klEstimates } from "./kl.js";
import { teacherTermDefaults as usual } from "./losses/policy-loss-defaults.js";
import { policyLosses } from "./losses/policy-losses.js";

/** Options of the loss term of a teacher. Configs name them in `distillation.distillation_loss`. */
export const teacherTermOptions = z.strictObject({
  estimate: z
    .string()
    .default(usual.estimate)
    .meta({
      description:
        "Estimator of the divergence from the teacher at each token. k3 has the gradient of the forward KL: the policy covers the teacher's answers. k1 with use_policy_gradient has that of the reverse KL: the policy drops answers that the teacher would not give. forward_kl_topk is no estimate: it computes the forward KL over the teacher's likeliest tokens.",
      examples: [...klEstimates.names(), FORWARD_KL_TOPK],
    }),
  topk: z
    .int()
    .min(1)
    .default(usual.topk)
    .describe("With forward_kl_topk: number of the teacher's likeliest tokens that are compared at each token."),
  coefficient: z
    .number()
    .min(0)
    .default(usual.coefficient)
    .describe("Weight of the teacher's term; the task's loss has weight 1."),
  taskRewards: z
    .boolean()
    .default(usual.taskRewards)
    .describe("true: also train on the task's rewards. false: train only on the teacher's term, with weight 1."),
  policyGradient: z
    .boolean()
    .default(usual.policyGradient)
    .describe("Minus the divergence is an advantage of each token; false: the estimate itself is differentiated."),
  lossMode: z.string().default(usual.lossMode).meta({
    description: "With use_policy_gradient: policy loss for these advantages.",
    examples: policyLosses.names(),
  }),
  clipRatioLow: z
    .number()
    .min(0)
    .default(usual.clipRatioLow)
    .describe(
      "With use_policy_gradient: ratios below 1 minus this are clipped. The actor's clips have no effect here.",
    ),
  clipRatioHigh: z
    .number()
    .positive()
    .default(usual.clipRatioHigh)
    .describe("With use_policy_gradient: ratios above 1 plus this are clipped."),
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
