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

/** Teachers, and what a step asks of them; the loss that learns from them has `teacherTermOptions`. */
export const distillationOptions = z.strictObject({
  /** By name; metrics name them. */
  teachers: z.record(z.string(), teacherOptions).default({}),
  teacherKey: z
    .string()
    .default("data_source")
    .describe("Of several teachers: the field of a row, or of its extra_info, that chooses among them."),
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
