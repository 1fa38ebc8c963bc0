import { z } from "zod";

/** One model that teaches. */
export const teacherOptions = z.strictObject({
  key: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "With several teachers: value of teacher_key in the rows of this teacher. null: all rows that no other teacher has.",
    ),
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
      "Weights of a teacher without model and adapter. base: the policy's model before training. live: the policy at the beginning of each step; needs hint_key or correction_key.",
    ),
  hintKey: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "Field of each row, or of its extra_info, with a text such as a demonstration. Only the teacher reads it, as a system message. ground_truth: the row's truth (SDFT). null: the teacher reads the policy's prompt.",
    ),
  correctionKey: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "Name of a text that the reward returns beside the score, such as a judge's correction of this conversation. The teacher reads it in place of the row's hint. A conversation without one has the row's hint; without that its teacher teaches it nothing. null: none.",
    ),
});

export type TeacherModel = z.infer<typeof teacherOptions>;

/** Teachers, and what a step asks of them; the loss that learns from them has `teacherTermOptions`. */
export const distillationOptions = z.strictObject({
  /** By name; metrics name them. */
  teachers: z.record(z.string(), teacherOptions).default({}),
  teacherKey: z
    .string()
    .default("data_source")
    .describe("With several teachers: field of a row, or of its extra_info, whose value selects the teacher."),
  turnWeights: z
    .enum(["none", "relative"])
    .default("none")
    .describe(
      "relative: turns that lie further from the teacher than the first count less, by the ratio of their mean distances (SOD, arXiv:2605.07725).",
    ),
  guidedShare: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe(
      "Probability that the teacher, and not the policy, samples a turn of the first step. The policy learns nothing from such a turn (Guided-OPD, arXiv:2606.15912). 0: never.",
    ),
  guidedSteps: z
    .int()
    .min(1)
    .default(100)
    .describe("Number of steps over which that probability falls to 0, by the same amount each step."),
  turnWeightDelta: z.number().min(0).default(0.2).describe("With relative: a turn's weight is at most 1 plus this."),
});

export type DistillationOptions = z.infer<typeof distillationOptions>;
