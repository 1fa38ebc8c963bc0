import type { Trajectory } from "@cria/core";
import { listSampledTurns } from "@cria/core/internal";
import type { AdvantageInputs, EstimatorTurn } from "./advantage-estimator.js";

/** Fields of a trajectory that describe its turns. */
export type TurnSource = Pick<Trajectory, "responseMask" | "segments" | "timeline"> &
  Partial<Pick<Trajectory, "toolRewards" | "turnScores">>;

/** The sampled turns of a trajectory, in the order of their tokens. */
export function listTurns({ toolRewards = [], turnScores = [], ...trajectory }: TurnSource): EstimatorTurn[] {
  const turns = listSampledTurns(trajectory).map((turn) => ({ ...turn, tools: 0, scores: 0 }));
  const add = (field: "tools" | "scores", given: typeof toolRewards) => {
    for (const { value, tokenIndex } of given) {
      const turn = turns.find(({ start, end }) => tokenIndex >= start && tokenIndex < end);
      if (turn) turn[field] += value;
    }
  };
  add("tools", toolRewards);
  add("scores", turnScores);
  return turns;
}

/** Turns for inputs that lack them: each trajectory's stretches of tokens with mask 1, without states and rewards. */
export function makeTurns({ responseMask, offsets, segments }: AdvantageInputs): EstimatorTurn[][] {
  const mask = Uint8Array.from(responseMask);
  return Array.from({ length: offsets.length - 1 }, (_, i) => {
    const own = segments?.[i]?.map((segment) => ({ ...segment, messages: [] }));
    return listTurns({
      responseMask: mask.subarray(offsets[i]!, offsets[i + 1]!),
      ...(own ? { segments: own } : {}),
    });
  });
}
