import { Registry } from "./registry.js";

export interface OutcomeInputs {
  /** Reward of each trajectory. */
  rewards: ArrayLike<number>;
  /** Group of each trajectory: rows of the same prompt share one. */
  groups: readonly string[];
  /** false leaves r - mean (Dr. GRPO, arXiv:2503.20783). Default true. */
  normalizeByStd?: boolean;
}

/** An advantage for each trajectory; every sampled token of it gets the same. */
export type OutcomeAdvantage = (inputs: OutcomeInputs) => Float32Array;

export const advantageEstimators = new Registry<OutcomeAdvantage>("advantage estimator");

/**
 * Group-relative advantages (GRPO, Shao et al. 2024, arXiv:2402.03300): (r - mean) / (std + 1e-6) with the group's mean
 * and unbiased standard deviation. A group of one has mean 0 and std 1.
 */
export const estimateGrpo: OutcomeAdvantage = ({ rewards, groups, normalizeByStd = true }) => {
  const members = new Map<string, number[]>();
  groups.forEach((group, i) => {
    const list = members.get(group);
    if (list) list.push(i);
    else members.set(group, [i]);
  });
  const advantages = new Float32Array(rewards.length);
  for (const indices of members.values()) {
    const n = indices.length;
    const mean = n > 1 ? indices.reduce((sum, i) => sum + rewards[i]!, 0) / n : 0;
    const variance = n > 1 ? indices.reduce((sum, i) => sum + (rewards[i]! - mean) ** 2, 0) / (n - 1) : 1;
    const scale = normalizeByStd ? 1 / (Math.sqrt(variance) + 1e-6) : 1;
    for (const i of indices) advantages[i] = (rewards[i]! - mean) * scale;
  }
  return advantages;
};

advantageEstimators.register("grpo", estimateGrpo);
