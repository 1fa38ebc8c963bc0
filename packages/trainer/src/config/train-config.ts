import { z } from "zod";
import { actorSection } from "./sections/actor.js";
import { algorithmSection } from "./sections/algorithm.js";
import { clusterSection } from "./sections/cluster.js";
import { criticSection } from "./sections/critic.js";
import { dataSection } from "./sections/data.js";
import { distillationSection } from "./sections/distillation.js";
import { modelSection } from "./sections/model.js";
import { customRewardSection, rewardModelSection } from "./sections/reward.js";
import { rolloutSection } from "./sections/rollout.js";
import { trainerSection } from "./sections/trainer.js";

/**
 * Config of `cria train`, with the key names that users of verl know. Unknown keys are errors. The meaning of each
 * key is in its `.describe()`, from which `cria config`, the JSON Schema and docs/config.md are generated.
 */
export const trainConfigSchema = z.strictObject({
  actor_rollout_ref: z.strictObject({
    model: modelSection,
    actor: actorSection.prefault({}),
    rollout: rolloutSection.prefault({}),
  }),
  critic: criticSection.prefault({}),
  data: dataSection,
  algorithm: algorithmSection.prefault({}),
  distillation: distillationSection.prefault({}),
  reward_model: rewardModelSection.prefault({}),
  custom_reward_function: customRewardSection.prefault({}),
  trainer: trainerSection.prefault({}),
  cluster: clusterSection.prefault({}),
});

export type TrainConfig = z.infer<typeof trainConfigSchema>;
