import { klEstimates, policyLosses } from "@cria/algorithms";
import { defaultTeacherTerm as usual } from "@cria/algorithms/internal";
import { z } from "zod";

/** One model that teaches. */
export const teacherOptions = z.strictObject({
  key: z
    .string()
    .nullable()
    .default(null)
    .describe("Of several teachers: whose rows these are, by the value of teacher_key. null: of all rows."),
  model: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "A GGUF or its address, of any size and with the policy's vocabulary. null: the policy's own model as it was before training.",
    ),
  adapter: z
    .string()
    .nullable()
    .default(null)
    .describe("A LoRA adapter on that model, of an earlier training for example. null: none."),
  weights: z
    .enum(["base", "live"])
    .default("base")
    .describe(
      "Of a teacher without model and adapter: base, the policy's model before training, or live, the policy as each step finds it, which needs hint_key.",
    ),
  hintKey: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "A field of each row, or of its extra_info, whose text the teacher reads as a system message: a demonstration, a correction; ground_truth: the row's truth (SDFT). null: it reads what the policy reads.",
    ),
});

export type TeacherModel = z.infer<typeof teacherOptions>;

/** On-policy distillation: a teacher scores the policy's own conversations, and the policy moves towards it. */
export const distillationOptions = z.strictObject({
  /** By name; metrics name them. */
  teachers: z.record(z.string(), teacherOptions).default({}),
  teacherKey: z
    .string()
    .default("data_source")
    .describe("Of several teachers: the field of a row, or of its extra_info, that chooses among them."),
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
  turnWeights: z
    .enum(["none", "relative"])
    .default("none")
    .describe(
      "relative: turns that lie further from the teacher than the first count less, by the ratio of their mean distances (SOD, arXiv:2605.07725).",
    ),
  turnWeightDelta: z
    .number()
    .min(0)
    .default(0.2)
    .describe("Of relative: how far above 1 the weight of a turn may be that lies closer than the first."),
});

export type DistillationOptions = z.infer<typeof distillationOptions>;
