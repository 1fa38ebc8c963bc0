import type { AdvantageInputs } from "./advantage-estimator.js";

/**
 * Visits each trajectory's sampled tokens from the last to the first, along its paths. A state is passed from each
 * token to the previous sampled one; tokens in between (tools, users) do not change it. At a branching point the
 * token before it receives the mean of the branches' states, weighted by their numbers of paths:
 *
 *     state_t = sum_c paths_c state_c / sum_c paths_c,    paths_c = ends of conversations in branch c
 *
 * A quantity that is linear in the state (returns, GAE) is then, at every token, the mean over the paths through it;
 * nothing passes from a branch to its siblings. Each path ends with the episode's own reward (`episodeRewards`).
 * @param size number of entries of a state; they are 0 at the end of a path.
 * @param visit changes the state to that of token `t`, an index into the inputs; `reward` is the token's.
 */
export function carryBack(
  inputs: AdvantageInputs,
  size: number,
  visit: (t: number, reward: number, state: Float64Array) => void,
): void {
  const { tokenLevelRewards, responseMask, offsets, segments, episodeRewards } = inputs;
  for (let i = 0; i + 1 < offsets.length; i++) {
    const first = offsets[i]!;
    const parts = segments?.[i] ?? [{ start: 0, end: offsets[i + 1]! - first, parent: -1 }];
    const states = parts.map(() => new Float64Array(size));
    const paths = new Float64Array(parts.length);
    /** The last sampled token, whose reward already includes the episode's; other ends of paths get it added. */
    let last = offsets[i + 1]! - 1;
    while (last >= first && !responseMask[last]) last--;
    // A segment is stored after the one that it follows.
    for (let s = parts.length - 1; s >= 0; s--) {
      const { start, end, parent } = parts[s]!;
      const state = states[s]!;
      if (paths[s]! > 0) for (let n = 0; n < size; n++) state[n]! /= paths[s]!;
      for (let t = first + end - 1; t >= first + start; t--) {
        if (!responseMask[t]) continue;
        const isEnd = paths[s] === 0;
        if (isEnd) paths[s] = 1;
        const given = isEnd && t !== last ? (episodeRewards?.[i] ?? 0) : 0;
        visit(t, tokenLevelRewards[t]! + given, state);
      }
      if (parent < 0) continue;
      for (let n = 0; n < size; n++) states[parent]![n]! += paths[s]! * state[n]!;
      paths[parent]! += paths[s]!;
    }
  }
}
