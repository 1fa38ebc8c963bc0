import { z } from "zod";
import { distillationOptions, teacherOptions } from "../options/distillation.js";

const { shape: options } = distillationOptions;
const { shape: teacher } = teacherOptions;

/** One teacher. */
export const teacherEntry = z.strictObject({
  key: teacher.key,
  model_path: teacher.model,
  lora_adapter_path: teacher.adapter,
  weights: teacher.weights,
  hint_key: teacher.hintKey,
});

const distillationLoss = z.strictObject({
  loss_mode: options.estimate,
  use_task_rewards: options.taskRewards,
  distillation_loss_coef: options.coefficient,
  use_policy_gradient: options.policyGradient,
  policy_loss_mode: options.lossMode,
  clip_ratio_low: options.clipRatioLow,
  clip_ratio_high: options.clipRatioHigh,
  loss_max_clamp: options.maxLoss,
  log_prob_min_clamp: options.minLogprob,
  turn_weights: options.turnWeights,
  turn_weight_delta: options.turnWeightDelta,
});

export const distillationSection = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe("A teacher scores the policy's conversations, and the policy moves towards it (docs/teachers.md)."),
  teacher_key: options.teacherKey,
  teacher_models: z
    .record(z.string(), teacherEntry)
    .default({})
    .describe("The teachers by name; none: the policy's own model as it was before training."),
  distillation_loss: distillationLoss.prefault({}),
});
