import type { Trajectory, TrajectorySegment } from "@cria/core";
import type { AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { deviationOfGroup, listGroups, meanOfGroup } from "./outcome.js";

/** An agent's episode with its rewards: of the whole, and of single answers. */
export type CreditedTrajectory = Pick<Trajectory, "uid" | "responseMask" | "segments" | "turnScores"> & {
  rewards: Pick<Trajectory["rewards"], "outcome" | "length" | "tools" | "turns">;
};

/**
 * Group-relative advantages per answer, for `branch_credit: nodes`. The value of an answer is the episode's reward
 * plus the rewards of this answer and of its descendants in all branches. Its advantage is that value minus the mean
 * of its group, divided by the group's standard deviation (`normalizeByStd`, default true), where each episode
 * counts once, by the mean over its sampled tokens. Without rewards of answers this is GRPO (Shao et al. 2024,
 * arXiv:2402.03300).
 */
export function creditNodes(
  trajectories: readonly CreditedTrajectory[],
  { normalizeByStd = true }: Pick<AdvantageInputs, "normalizeByStd"> = {},
): AdvantageOutputs {
  const values = trajectories.map(valueTokens);
  const means = values.map((tokens, i) => averageSampled(tokens, trajectories[i]!.responseMask));
  const advantages = values.map((tokens) => new Float32Array(tokens.length));
  for (const indices of listGroups(trajectories.map(({ uid }) => uid))) {
    const mean = meanOfGroup(means, indices);
    const scale = normalizeByStd ? 1 / (deviationOfGroup(means, indices) + 1e-6) : 1;
    for (const i of indices)
      trajectories[i]!.responseMask.forEach((bit, t) => {
        if (bit === 1) advantages[i]![t] = (values[i]![t]! - mean) * scale;
      });
  }
  const flat = Float32Array.from(advantages.flatMap((tokens) => [...tokens]));
  return { advantages: flat, returns: flat.slice(), metrics: {} };
}

/** The part of the reward that belongs to the whole episode and to no answer. */
export function rewardOfEpisode({ rewards }: Pick<CreditedTrajectory, "rewards">): number {
  return rewards.outcome + rewards.length + rewards.tools;
}

/** Rewards of single answers, each on its token; as long as the mask. */
export function placeAnswerRewards({ rewards, turnScores, responseMask }: CreditedTrajectory): Float64Array {
  const sum = turnScores.reduce((total, { value }) => total + value, 0);
  // Factor by which reward_model weighs turn scores.
  const weight = sum === 0 ? 1 : rewards.turns / sum;
  const given = new Float64Array(responseMask.length);
  for (const { value, tokenIndex } of turnScores) given[tokenIndex]! += weight * value;
  return given;
}

/** Value of each token: the episode's own reward, and those of answers from here on. */
function valueTokens(trajectory: CreditedTrajectory): Float64Array {
  const { segments, responseMask } = trajectory;
  const { length } = responseMask;
  const given = placeAnswerRewards(trajectory);
  const values = new Float64Array(length);
  const whole: TrajectorySegment = { start: 0, end: length, parent: -1, messages: [] };
  const parts = segments ?? [whole];
  const after = new Float64Array(parts.length);
  // A segment is stored after the one that it follows.
  for (let s = parts.length - 1; s >= 0; s--) {
    const { start, end, parent } = parts[s]!;
    for (let t = end - 1; t >= start; t--) {
      after[s]! += given[t]!;
      values[t] = after[s]!;
    }
    if (parent >= 0) after[parent]! += after[s]!;
  }
  const outcome = rewardOfEpisode(trajectory);
  return values.map((value, t) => (responseMask[t] === 1 ? value + outcome : 0));
}

function averageSampled(values: Float64Array, mask: Uint8Array): number {
  let sum = 0;
  let count = 0;
  mask.forEach((bit, t) => {
    sum += bit === 1 ? values[t]! : 0;
    count += bit;
  });
  return count > 0 ? sum / count : 0;
}
