import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs, EstimatorTurn } from "./advantage-estimator.js";
import { makeTurns } from "./estimator-turn.js";
import { centerGroup, listGroups, spreadOverTokens, sumRewards } from "./outcome.js";

/**
 * Multi-turn GRPO (MT-GRPO, Zeng et al. 2025, arXiv:2505.11821): turn rewards and the outcome are normalised
 * separately. The advantage of a turn is the outcome's plus its own:
 *
 *     A_k = A_outcome + turnWeight A_turn
 *     A_outcome = (o - mean) / (std + 1e-6)      o = `episodeRewards`, within the group
 *     A_turn = (r_k - mean) / (std + 1e-6)       r_k = other rewards on the turn's tokens, among all k-th turns
 *
 * with unbiased standard deviations; `normalizeByStd: false` leaves them out. The paper has one tool call and an
 * answer: the call has both advantages, the answer only the outcome's. With more turns, each is compared with the
 * turns of the same number, counted along its path. A turn whose number occurs only once in the group has A_turn 0.
 * Without `episodeRewards` turn rewards and outcome cannot be told apart: all rewards then count as the outcome, as
 * in GRPO.
 */
export const estimateMtGrpo: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { groups, offsets, responseMask, episodeRewards, turnWeight = 1, normalizeByStd = true } = inputs;
  const outcomes = episodeRewards ? Float64Array.from(episodeRewards) : sumRewards(inputs);
  const turns = episodeRewards ? listRewarded(inputs, inputs.turns ?? makeTurns(inputs), episodeRewards) : [];
  const groupList = listGroups(groups);
  for (const indices of groupList) centerGroup(outcomes, indices, normalizeByStd);
  const advantages = Float32Array.from(spreadOverTokens(outcomes, inputs));
  for (const indices of groupList) {
    const byNumber = new Map<number, RewardedTurn[]>();
    for (const i of indices)
      for (const turn of turns[i] ?? []) byNumber.set(turn.number, [...(byNumber.get(turn.number) ?? []), turn]);
    for (const members of byNumber.values()) {
      if (members.length < 2) continue;
      const values = Float64Array.from(members, ({ reward }) => reward);
      centerGroup(values, [...values.keys()], normalizeByStd);
      members.forEach(({ i, turn }, m) => {
        for (let t = offsets[i]! + turn.start; t < offsets[i]! + turn.end; t++)
          if (responseMask[t]) advantages[t] = outcomes[i]! + turnWeight * values[m]!;
      });
    }
  }
  return { advantages, returns: advantages.slice(), metrics: {} };
}

interface RewardedTurn {
  /** Index of its trajectory. */
  i: number;
  turn: EstimatorTurn;
  /** Number of turns before it on its path. */
  number: number;
  /** Sum of the rewards on its tokens, without the episode's. */
  reward: number;
}

/** Turns with at least one trained token. */
function listRewarded(
  { tokenLevelRewards, responseMask, offsets }: AdvantageInputs,
  turns: readonly (readonly EstimatorTurn[])[],
  episodeRewards: ArrayLike<number>,
): RewardedTurn[][] {
  return turns.map((own, i) => {
    let last = offsets[i + 1]! - 1;
    while (last >= offsets[i]! && !responseMask[last]) last--;
    const numbers: number[] = [];
    return own.flatMap((turn) => {
      const number = turn.parent < 0 ? 0 : numbers[turn.parent]! + 1;
      numbers.push(number);
      let reward = 0;
      let isSampled = false;
      for (let t = offsets[i]! + turn.start; t < offsets[i]! + turn.end; t++) {
        if (!responseMask[t]) continue;
        isSampled = true;
        // The last sampled token's reward includes the episode's own.
        reward += tokenLevelRewards[t]! - (t === last ? episodeRewards[i]! : 0);
      }
      return isSampled ? [{ i, turn, number, reward }] : [];
    });
  });
}
