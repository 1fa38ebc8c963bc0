import type { AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";

/** Reward of each trajectory: the sum over its sampled tokens. */
export function sumRewards({ tokenLevelRewards, responseMask, offsets }: AdvantageInputs): Float64Array {
  const rewards = new Float64Array(offsets.length - 1);
  for (let i = 0; i < rewards.length; i++)
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) if (responseMask[t]) rewards[i]! += tokenLevelRewards[t]!;
  return rewards;
}

/** Sampled tokens of each trajectory. */
export function countSampled({ responseMask, offsets }: AdvantageInputs): Float64Array {
  const counts = new Float64Array(offsets.length - 1);
  for (let i = 0; i < counts.length; i++)
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) if (responseMask[t]) counts[i]!++;
  return counts;
}

/** Indices of each group's trajectories, groups in order of appearance. */
export function listGroups(groups: readonly string[]): number[][] {
  const members = new Map<string, number[]>();
  groups.forEach((group, i) => {
    const list = members.get(group);
    if (list) list.push(i);
    else members.set(group, [i]);
  });
  return [...members.values()];
}

/**
 * Mean of a group; 0 for a group of one, which has nothing to compare with. Computed relative to the first value, so
 * that equal values have exactly that mean, and advantages of exactly 0.
 */
export function meanOfGroup(values: ArrayLike<number>, indices: readonly number[]): number {
  if (indices.length < 2) return 0;
  const first = values[indices[0]!]!;
  return first + indices.reduce((sum, i) => sum + (values[i]! - first), 0) / indices.length;
}

/** Unbiased standard deviation of a group; 1 for a group of one. */
export function deviationOfGroup(values: ArrayLike<number>, indices: readonly number[]): number {
  if (indices.length < 2) return 1;
  const mean = meanOfGroup(values, indices);
  return Math.sqrt(indices.reduce((sum, i) => sum + (values[i]! - mean) ** 2, 0) / (indices.length - 1));
}

/**
 * Subtracts the group's mean from its values, in place, and divides by the standard deviation + 1e-6 if `byStd`. A
 * group of one keeps its value.
 */
export function centerGroup(values: Float64Array, indices: readonly number[], byStd: boolean): void {
  const mean = meanOfGroup(values, indices);
  const scale = byStd ? 1 / (deviationOfGroup(values, indices) + 1e-6) : 1;
  for (const i of indices) values[i] = (values[i]! - mean) * scale;
}

/** The same value on every sampled token of a trajectory. */
export function spreadOverTokens(perTrajectory: ArrayLike<number>, inputs: AdvantageInputs): Float64Array {
  const { responseMask, offsets } = inputs;
  const values = new Float64Array(responseMask.length);
  for (let i = 0; i < perTrajectory.length; i++)
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) if (responseMask[t]) values[t] = perTrajectory[i]!;
  return values;
}

/** Outcome advantages spread over the sampled tokens; without a critic, the returns are equal to them. */
export function fromOutcome(perTrajectory: ArrayLike<number>, inputs: AdvantageInputs): AdvantageOutputs {
  const advantages = Float32Array.from(spreadOverTokens(perTrajectory, inputs));
  return { advantages, returns: advantages.slice(), metrics: {} };
}
