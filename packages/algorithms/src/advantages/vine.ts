import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs, EstimatorTurn } from "./advantage-estimator.js";
import { makeTurns } from "./estimator-turn.js";
import { listGroups, sumRewards } from "./outcome.js";

/**
 * Advantages by measured values (VinePPO, Kazemnejad et al. 2024, arXiv:2410.01679), for turns in the place of steps.
 * The values replace a critic's:
 *
 *     A_k = V_k - V_(k-1)        on the tokens of turn k
 *     V_0 = mean of the group's rewards        V_k = `turnValues` at the end of turn k
 *     V of the last turn = the trajectory's reward
 *
 * Rewards count whole wherever they are earned, so that a turn's own reward is part of V_k. Advantages of a
 * trajectory's turns add up to its reward less V_0. Nothing is divided by a standard deviation. Turns up to one whose
 * value is unknown (null) share what they bring together. A group of one has V_0 = 0.
 */
export const estimateVine: AdvantageEstimator = Object.assign(estimate, {
  comparesGroup: true,
  needs: ["turnValues"] as const,
});

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { groups, offsets, responseMask, turnValues } = inputs;
  const rewards = sumRewards(inputs);
  const begins = new Float64Array(rewards.length);
  for (const indices of listGroups(groups)) {
    if (indices.length < 2) continue;
    const mean = indices.reduce((sum, i) => sum + rewards[i]!, 0) / indices.length;
    for (const i of indices) begins[i] = mean;
  }
  const advantages = new Float32Array(responseMask.length);
  const known: number[] = [];
  (inputs.turns ?? makeTurns(inputs)).forEach((turns, i) => {
    let value = begins[i]!;
    let open: EstimatorTurn[] = [];
    turns.forEach((turn, k) => {
      open.push(turn);
      const isLast = k === turns.length - 1;
      const end = isLast ? rewards[i]! : (turnValues?.[i]?.[k] ?? null);
      if (end === null) return;
      if (!isLast) known.push(end);
      for (const { start, end: until } of open)
        for (let t = offsets[i]! + start; t < offsets[i]! + until; t++)
          if (responseMask[t]) advantages[t] = end - value;
      value = end;
      open = [];
    });
  });
  const metrics: Record<string, number> =
    known.length > 0 ? { "turn_values/mean": known.reduce((a, b) => a + b, 0) / known.length } : {};
  return { advantages, returns: advantages.slice(), metrics };
}
