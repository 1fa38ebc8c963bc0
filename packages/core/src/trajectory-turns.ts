import type { Trajectory, TurnRecord } from "./trajectory.js";

/** A turn that the policy sampled, in the tree of its trajectory's turns. */
export interface SampledTurn {
  /**
   * Its token range `[start, end)` in the trajectory, at least one token. Tokens that are not trained on have mask
   * 0.
   */
  start: number;
  end: number;
  /** Index of its segment; 0 if the trajectory does not branch. */
  segment: number;
  /** Index of the previous sampled turn on its path, always smaller than its own; -1: none. */
  parent: number;
  /**
   * Name of the environment's state that it answers, from the previous turn (`TurnRecord.state`). Left out: the
   * state has no name.
   */
  state?: string;
  /** Role that the policy played in it (`role` of the agent's call). Left out: none was named. */
  role?: string;
}

/** The role of turns that name none. */
export const UNNAMED_ROLE = "policy";

/**
 * The turns that the policy sampled, in the order of their tokens: as the agent loop recorded them, else each stretch of tokens with
 * mask 1.
 */
export function listSampledTurns({
  responseMask,
  segments = [{ start: 0, end: responseMask.length, parent: -1 }],
  timeline,
}: {
  responseMask: ArrayLike<number>;
  segments?: readonly { start: number; end: number; parent: number }[];
  timeline?: Trajectory["timeline"];
}): SampledTurn[] {
  const recorded = timeline?.turns ?? [];
  // A user's loop need not record its turns.
  const records = recorded.length > 0 ? [...recorded].sort((a, b) => a.start - b.start) : null;
  const turns: SampledTurn[] = [];
  /** End of each segment: its last sampled turn, and the state in which a next turn begins. */
  const ends: { turn: number; state: string | undefined }[] = [];
  let next = 0;
  segments.forEach((segment, index) => {
    let { turn, state } = ends[segment.parent] ?? { turn: -1, state: undefined };
    let own: readonly Pick<TurnRecord, "role" | "start" | "end" | "state" | "call" | "sampledBy">[];
    if (records) {
      const first = next;
      while (next < records.length && records[next]!.start < segment.end) next++;
      own = records.slice(first, next);
    } else own = findStretches(responseMask, segment);
    for (const { role, start, end, state: named, call, sampledBy } of own) {
      if (role !== "assistant") state = named ?? state;
      else if (sampledBy !== undefined) state = undefined;
      else if (end > start) {
        const parent = turn;
        const played = typeof call?.request.role === "string" ? { role: call.request.role } : {};
        turn =
          turns.push({ start, end, segment: index, parent, ...(state === undefined ? {} : { state }), ...played }) - 1;
        state = undefined;
      }
    }
    ends.push({ turn, state });
  });
  return turns;
}

function findStretches(mask: ArrayLike<number>, { start, end }: { start: number; end: number }) {
  const stretches: Pick<TurnRecord, "role" | "start" | "end">[] = [];
  for (let t = start; t < end; t++) {
    if (!mask[t]) continue;
    const first = t;
    while (t + 1 < end && mask[t + 1]) t++;
    stretches.push({ role: "assistant", start: first, end: t + 1 });
  }
  return stretches;
}
