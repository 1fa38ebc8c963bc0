import type { UnjudgedTrajectory } from "@cria/episodes";
import type { DumpLine } from "@cria/records";

export interface RecordedToken {
  id: number;
  logprob: number;
}

/** Whether a conversation was the same again. */
export interface ReplayResult {
  uid: string;
  sample: number;
  step: number;
  /** Token ids are equal, and logprobs bit for bit (of runs of earlier versions: to the six digits that they wrote). */
  equal: boolean;
  /** Tokens that were compared, and those of them that the policy sampled. */
  tokens: number;
  sampled: number;
  /** The first token that differs; null on a side that has no token there. */
  difference: { token: number; recorded: RecordedToken | null; replayed: RecordedToken | null } | null;
}

/** @param until tokens before this index are compared; default: all. */
export function compareReplay(
  line: DumpLine,
  replayed: Pick<UnjudgedTrajectory, "tokenIds" | "rolloutLogprobs">,
  until = Number.POSITIVE_INFINITY,
): ReplayResult {
  const recordedEnd = Math.min(until, line.token_ids.length);
  const replayedEnd = Math.min(until, replayed.tokenIds.length);
  const isExact = line.sampling !== undefined;
  const isSame = (t: number) =>
    line.token_ids[t] === replayed.tokenIds[t] &&
    isSameLogprob(line.rollout_logprobs[t]!, replayed.rolloutLogprobs[t]!, isExact);
  const most = Math.max(recordedEnd, replayedEnd);
  let token = 0;
  while (token < Math.min(recordedEnd, replayedEnd) && isSame(token)) token++;
  const equal = token === most;
  return {
    uid: line.uid,
    sample: line.sample,
    step: line.step!,
    equal,
    tokens: recordedEnd,
    sampled: line.response_mask.slice(0, recordedEnd).reduce((sum, bit) => sum + bit, 0),
    difference: equal
      ? null
      : {
          token,
          recorded: token < recordedEnd ? { id: line.token_ids[token]!, logprob: line.rollout_logprobs[token]! } : null,
          replayed:
            token < replayedEnd ? { id: replayed.tokenIds[token]!, logprob: replayed.rolloutLogprobs[token]! } : null,
        },
  };
}

function isSameLogprob(recorded: number, replayed: number, isExact: boolean): boolean {
  return isExact ? Math.fround(recorded) === replayed : recorded === Number(replayed.toFixed(6));
}
