import type { Trajectory } from "@cria/core";
import type { AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { type CreditedTrajectory, placeAnswerRewards, rewardOfEpisode } from "./credit-nodes.js";
import { centerGroup, listGroups } from "./outcome.js";

/**
 * Advantages for `branch_credit: multi_trajectories`, the rule of verl's `compute_advantage_for_multi_trajectories`. An
 * episode of several conversations is compared by its last one alone: by the episode's reward, and the rewards of
 * answers in the conversation that was answered last, from its beginning on. GRPO's advantage of that reward
 * (`normalizeByStd` as in GRPO, default true) is the advantage of every sampled token of the episode, in all of its
 * conversations. It is 0 if nothing of the last conversation is trained on. An episode of one conversation has GRPO's
 * advantage.
 */
export function creditMultiTrajectories(
  trajectories: readonly (CreditedTrajectory & Pick<Trajectory, "timeline">)[],
  { normalizeByStd = true }: Pick<AdvantageInputs, "normalizeByStd"> = {},
): AdvantageOutputs {
  const lasts = trajectories.map(findLastConversation);
  const values = Float64Array.from(trajectories, (trajectory, i) => {
    const given = placeAnswerRewards(trajectory);
    return lasts[i]!.reduce((sum, t) => sum + given[t]!, rewardOfEpisode(trajectory));
  });
  for (const indices of listGroups(trajectories.map(({ uid }) => uid))) centerGroup(values, indices, normalizeByStd);
  const advantages = trajectories.flatMap(({ responseMask }, i) => {
    const isTrained = lasts[i]!.some((t) => responseMask[t] === 1);
    return Array.from(responseMask, (bit) => (bit === 1 && isTrained ? values[i]! : 0));
  });
  return { advantages: Float32Array.from(advantages), returns: Float32Array.from(advantages), metrics: {} };
}

/**
 * Tokens of the conversation that was answered last, from its beginning to its end; without a record of the agent's
 * calls, of the conversation that ends with the last segment.
 */
function findLastConversation({
  segments,
  responseMask,
  timeline,
}: Pick<Trajectory, "segments" | "responseMask" | "timeline">): number[] {
  if (!segments) return [...responseMask.keys()];
  const last = timeline?.turns.find(({ call }) => call?.last)?.start ?? responseMask.length - 1;
  const tokens: number[] = [];
  let s = segments.findLastIndex(({ start, end }) => start <= last && last < end);
  for (; s >= 0; s = segments[s]!.parent) for (let t = segments[s]!.start; t < segments[s]!.end; t++) tokens.push(t);
  return tokens;
}
