import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs, EstimatorTurn } from "./advantage-estimator.js";
import { carryBack } from "./carry-back.js";
import { makeTurns } from "./estimator-turn.js";
import { centerGroup, listGroups, spreadOverTokens, sumRewards } from "./outcome.js";
import { numberHistories } from "./turn-histories.js";

/**
 * Group-in-group policy optimization (GiGPO, Feng et al. 2025, arXiv:2505.10978): the episode's advantage within its
 * group, plus the turn's advantage among the group's turns that answer the same state:
 *
 *     A = A_episode + turnWeight A_turn
 *     A_episode = R - mean of the group's R                      R = reward of the episode
 *     A_turn = G_k - mean of the G of the state's turns          G_k = r_k + gamma G_(k+1), r_k = rewards on the turn's tokens
 *
 * `normalizeByStd` (default false here: mean_norm) divides both by the unbiased standard deviation + 1e-6
 * (mean_std_norm). Turns answer the same state if their `state` is equal or, without a `state`, if they follow the
 * same tokens (`tokenIds`). A turn whose state no other turn of the group answers has A_turn 0. At a branching
 * point, G_(k+1) is the mean over the paths. The metric `anchored_turns` is the share of turns whose state at least
 * one other turn answers: 0 if states are never equal.
 */
export const estimateGigpo: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { groups, offsets, responseMask, gamma = 1, turnWeight = 1, normalizeByStd = false } = inputs;
  const turns = inputs.turns ?? makeTurns(inputs);
  const episodes = sumRewards(inputs);
  for (const indices of listGroups(groups)) centerGroup(episodes, indices, normalizeByStd);
  const advantages = Float32Array.from(spreadOverTokens(episodes, inputs));
  const returns = discountTurns(inputs, turns, gamma);
  const anchors = listAnchors(inputs, turns);
  const shared = anchors.filter((members) => members.length > 1);
  for (const members of shared) {
    const values = Float64Array.from(members, ({ first }) => returns[first]!);
    centerGroup(values, [...values.keys()], normalizeByStd);
    members.forEach(({ i, turn }, m) => {
      for (let t = offsets[i]! + turn.start; t < offsets[i]! + turn.end; t++)
        if (responseMask[t]) advantages[t] = episodes[i]! + turnWeight * values[m]!;
    });
  }
  const anchored = shared.flat().length / Math.max(1, anchors.flat().length);
  return { advantages, returns: advantages.slice(), metrics: { anchored_turns: anchored } };
}

interface AnchoredTurn {
  /** Index of its trajectory. */
  i: number;
  turn: EstimatorTurn;
  /** Its first token with mask 1, as an index into the inputs. */
  first: number;
}

/** G_k at the tokens of each turn: rewards within a turn count in full, those of the next turn times gamma. */
function discountTurns(inputs: AdvantageInputs, turns: readonly (readonly EstimatorTurn[])[], gamma: number) {
  const { offsets, responseMask } = inputs;
  const discounts = new Float64Array(responseMask.length).fill(1);
  turns.forEach((own, i) => {
    for (const { start, end } of own) {
      let last = offsets[i]! + end - 1;
      while (last >= offsets[i]! + start && !responseMask[last]) last--;
      if (last >= offsets[i]! + start) discounts[last] = gamma;
    }
  });
  const returns = new Float64Array(responseMask.length);
  carryBack(inputs, 1, (t, reward, state) => {
    state[0] = reward + discounts[t]! * state[0]!;
    returns[t] = state[0]!;
  });
  return returns;
}

/** Groups turns by state, within each group of trajectories. A turn with an unknown state stands alone. */
function listAnchors(inputs: AdvantageInputs, turns: readonly (readonly EstimatorTurn[])[]): AnchoredTurn[][] {
  const { groups, offsets, responseMask } = inputs;
  const histories = numberHistories(inputs, turns);
  return listGroups(groups).flatMap((indices) => {
    const states = new Map<string | number | EstimatorTurn, AnchoredTurn[]>();
    for (const i of indices) {
      turns[i]!.forEach((turn, k) => {
        let first = offsets[i]! + turn.start;
        while (first < offsets[i]! + turn.end && !responseMask[first]) first++;
        if (first === offsets[i]! + turn.end) return;
        // Names are strings and histories numbers, so the two cannot be confused.
        const key = turn.state ?? histories?.[i]?.[k] ?? turn;
        const members = states.get(key) ?? [];
        states.set(key, members);
        members.push({ i, turn, first });
      });
    }
    return [...states.values()];
  });
}
