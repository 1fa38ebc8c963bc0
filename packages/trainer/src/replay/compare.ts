import type { TrajectorySegment } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import type { DumpLine } from "@cria/records";
import { describeMessages } from "@cria/records/internal";

export interface RecordedToken {
  id: number;
  logprob: number;
}

/** Result of replaying a conversation. */
export interface ReplayResult {
  uid: string;
  sample: number;
  step: number;
  /**
   * True if token ids and masks are equal, logprobs bit for bit (for runs of earlier versions: to the six digits
   * that they wrote), and also messages and segments, if the whole conversation was compared and its line records
   * its sampling.
   */
  equal: boolean;
  /** Number of compared tokens, and the sampled ones among them. */
  tokens: number;
  sampled: number;
  /** The first token that differs; null: none. A side without a token there is null. */
  difference: { token: number; recorded: RecordedToken | null; replayed: RecordedToken | null } | null;
  /**
   * The first other difference, by its name in the line (`response_mask[7]`, `messages[2].content`); null: none, or
   * a token differs.
   */
  otherwise: { field: string; recorded: unknown; replayed: unknown } | null;
}

/** @param until number of leading tokens to compare; default: all. */
export function compareReplay(
  line: DumpLine,
  replayed: Pick<UnjudgedTrajectory, "tokenIds" | "rolloutLogprobs" | "responseMask" | "messages" | "segments">,
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
  const areTokensEqual = token === most;
  const isWhole = until === Number.POSITIVE_INFINITY && isExact;
  const masks = [line.response_mask, [...replayed.responseMask]].map((mask) => mask.slice(0, recordedEnd));
  const otherwise = areTokensEqual
    ? (findDifference("response_mask", masks[0], masks[1]) ?? (isWhole ? findOtherMessage(line, replayed) : null))
    : null;
  return {
    uid: line.uid,
    sample: line.sample,
    step: line.step!,
    equal: areTokensEqual && otherwise === null,
    tokens: recordedEnd,
    sampled: line.response_mask.slice(0, recordedEnd).reduce((sum, bit) => sum + bit, 0),
    difference: areTokensEqual
      ? null
      : {
          token,
          recorded: token < recordedEnd ? { id: line.token_ids[token]!, logprob: line.rollout_logprobs[token]! } : null,
          replayed:
            token < replayedEnd ? { id: replayed.tokenIds[token]!, logprob: replayed.rolloutLogprobs[token]! } : null,
        },
    otherwise,
  };
}

function isSameLogprob(recorded: number, replayed: number, isExact: boolean): boolean {
  return isExact ? Math.fround(recorded) === replayed : recorded === Number(replayed.toFixed(6));
}

function findOtherMessage(
  line: DumpLine,
  replayed: Pick<UnjudgedTrajectory, "messages" | "segments">,
): ReplayResult["otherwise"] {
  const messages = [line.messages, replayed.messages].map(describeMessages);
  const segments = [line.segments, replayed.segments].map((all) => all?.map(describeSegment));
  return findDifference("messages", messages[0], messages[1]) ?? findDifference("segments", segments[0], segments[1]);
}

const describeSegment = ({ messages, ...segment }: TrajectorySegment) => ({
  ...segment,
  messages: describeMessages(messages),
});

/** The first difference between two JSON values. */
function findDifference(field: string, recorded: unknown, replayed: unknown): ReplayResult["otherwise"] {
  if (Object.is(recorded, replayed)) return null;
  const isBranch = isObject(recorded) && isObject(replayed) && Array.isArray(recorded) === Array.isArray(replayed);
  if (!isBranch) return { field, recorded, replayed };
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(replayed)])) {
    const name = Array.isArray(recorded) ? `${field}[${key}]` : `${field}.${key}`;
    const found = findDifference(name, recorded[key], replayed[key]);
    if (found) return found;
  }
  return null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
