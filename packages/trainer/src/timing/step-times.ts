/** The work on which a step's conversations wait. */
export type RolloutActivity = "decoding" | "waiting_for_tools" | "waiting_for_groups";

/** Parts of a step's wall time. Each instant belongs to one of them. */
export type StepTimes = Record<RolloutActivity | "scoring" | "training" | "other", number>;

/** Kind of each measured part of a step. */
export const kindsOfWork: Readonly<Record<string, "rollout" | "scoring" | "training">> = {
  gen: "rollout",
  reward: "scoring",
  old_log_prob: "scoring",
  ref: "scoring",
  teacher: "scoring",
  values: "scoring",
  adv: "training",
  update_critic: "training",
  update_actor: "training",
  update_kl: "scoring",
};

/**
 * Divides a step's seconds into parts that add up to `seconds.step`.
 * @param seconds by name of the measured part.
 * @param rollout how `seconds.gen` divides; what is missing of it counts as `other`.
 */
export function divideStep(
  seconds: Readonly<Record<string, number>>,
  rollout: Readonly<Record<RolloutActivity, number>>,
): StepTimes {
  const sum = (wanted: string) =>
    Object.entries(kindsOfWork).reduce(
      (total, [name, kind]) => total + (kind === wanted ? (seconds[name] ?? 0) : 0),
      0,
    );
  const parts = { ...rollout, scoring: sum("scoring"), training: sum("training") };
  const known = Object.values(parts).reduce((total, part) => total + part, 0);
  return { ...parts, other: Math.max(0, (seconds.step ?? 0) - known) };
}
