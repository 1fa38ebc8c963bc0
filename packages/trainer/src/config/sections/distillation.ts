import { teacherTermOptions } from "@cria/algorithms/schemas";
import { z } from "zod";
import { distillationOptions, teacherOptions } from "../options/distillation.js";

const { shape: options } = distillationOptions;
const { shape: teacher } = teacherOptions;
const { shape: term } = teacherTermOptions;

/** One teacher. */
export const teacherEntry = z.strictObject({
  key: teacher.key,
  model_path: teacher.model,
  lora_adapter_path: teacher.adapter,
  weights: teacher.weights,
  hint_key: teacher.hintKey,
  correction_key: teacher.correctionKey,
});

const distillationLoss = z.strictObject({
  loss_mode: term.estimate,
  topk: term.topk,
  use_task_rewards: term.taskRewards,
  distillation_loss_coef: term.coefficient,
  use_policy_gradient: term.policyGradient,
  policy_loss_mode: term.lossMode,
  clip_ratio_low: term.clipRatioLow,
  clip_ratio_high: term.clipRatioHigh,
  loss_max_clamp: term.maxLoss,
  log_prob_min_clamp: term.minLogprob,
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
  guided: z.strictObject({ share: options.guidedShare, steps: options.guidedSteps }).prefault({}),
});
