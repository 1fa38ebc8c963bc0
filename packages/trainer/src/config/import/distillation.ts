import type { TeacherTermOptions } from "@cria/algorithms";
import { teacherTermOptions } from "@cria/algorithms/schemas";
import { type DistillationOptions, distillationOptions, teacherOptions } from "../options/distillation.js";
import type { TrainConfig } from "../train-config.js";
import { teacherKeys, trainKeys } from "./config-keys.js";

/** The teachers of a config, and how the policy learns from them; null: it has none. */
export function importDistillation(config: Pick<TrainConfig, "distillation">): DistillationOptions | null {
  const { enabled, teacher_models } = config.distillation;
  if (!enabled) return null;
  const named = Object.entries(teacher_models).map(([name, entry]) => [name, teacherKeys.read(entry, teacherOptions)]);
  return {
    ...trainKeys.read(config, distillationOptions),
    teachers: named.length > 0 ? Object.fromEntries(named) : { base: teacherOptions.parse({}) },
  };
}

/** The term of the loss that these options mean. */
export function importTeacherTerm(config: Pick<TrainConfig, "distillation">): TeacherTermOptions | null {
  return config.distillation.enabled ? trainKeys.read(config, teacherTermOptions) : null;
}
