import type { StepReward, Trajectory, TrajectorySegment, TurnRecord } from "@cria/core";
import type { Refuse } from "./trajectory-schema.js";

/** Limits that an episode's tokens must keep to. */
export interface LayoutLimits {
  /** Token ids must lie in [0, vocabSize); left out: any id is allowed. */
  vocabSize?: number;
  /** True for an id outside the vocabulary that stands for a part of an image; left out: no such ids. */
  isVector?: (id: number) => boolean;
  /** Maximum number of tokens after the prompt; left out: no limit. */
  responseLength?: number;
  /** Maximum number of tokens of a conversation; left out: no limit. */
  contextLength?: number;
}

/** Checked fields of a trajectory. Left out: the policy computes the log-probabilities; no rewards; no known turns. */
interface Layout
  extends Pick<Trajectory, "tokenIds" | "promptLength" | "responseMask">,
    Partial<Pick<Trajectory, "rolloutLogprobs" | "segments" | "turnScores" | "toolRewards">> {
  turns?: readonly TurnRecord[];
}

/**
 * Checks that the fields of a trajectory (`trajectorySchema`) agree with each other and with the limits; calls
 * `refuse` for the first that does not.
 */
export function checkLayout(layout: Layout, limits: LayoutLimits, refuse: Refuse): void {
  const { tokenIds, responseMask, turns = [] } = layout;
  const { length } = tokenIds;
  checkTokens(layout, limits, refuse);
  checkLengths(layout, limits, refuse);
  checkMask(layout, limits, refuse);
  const { rolloutLogprobs } = layout;
  if (rolloutLogprobs) {
    if (rolloutLogprobs.length !== length) refuseLength("rolloutLogprobs", rolloutLogprobs, length, refuse);
    for (let t = 0; t < length; t++)
      if (!Number.isFinite(rolloutLogprobs[t])) refuse(`rolloutLogprobs[${t}]`, "finite numbers", rolloutLogprobs[t]);
  }
  for (const field of ["turnScores", "toolRewards"] as const)
    checkRewards(field, layout[field] ?? [], responseMask, refuse);
  for (const [i, turn] of turns.entries()) {
    checkSpan(`turns[${i}]`, turn, length, refuse);
    if (turn.toolCalls) checkSpan(`turns[${i}].toolCalls`, turn.toolCalls, length, refuse);
  }
}

const isOutside = (id: number, vocabSize: number) => id < 0 || id >= vocabSize;

function checkTokens({ tokenIds }: Layout, limits: LayoutLimits, refuse: Refuse): void {
  const { vocabSize = Number.POSITIVE_INFINITY, isVector } = limits;
  for (let t = 0; t < tokenIds.length; t++) {
    const id = tokenIds[t]!;
    if (!isOutside(id, vocabSize) || isVector?.(id)) continue;
    const ids = vocabSize < Number.POSITIVE_INFINITY ? `token ids from 0 to ${vocabSize - 1}` : "token ids";
    refuse(`tokenIds[${t}]`, isVector ? `${ids}, or of images that were placed` : ids, id);
  }
}

function checkLengths({ tokenIds, promptLength, segments }: Layout, limits: LayoutLimits, refuse: Refuse): void {
  const { responseLength = Number.POSITIVE_INFINITY, contextLength = Number.POSITIVE_INFINITY } = limits;
  const { length } = tokenIds;
  if (promptLength > length) refuse("promptLength", `a whole number below ${length + 1}`, promptLength);
  if (length - promptLength > responseLength)
    refuse("tokenIds", `at most ${responseLength} tokens after the prompt`, `${length - promptLength} tokens`);
  if (segments) checkSegments(segments, length, refuse);
  const longest = segments ? measureLongest(segments) : length;
  if (longest > contextLength)
    refuse("tokenIds", `at most ${contextLength} tokens of a conversation`, `${longest} tokens`);
}

/** Number of tokens of the longest conversation. Each segment follows an earlier one. */
function measureLongest(segments: readonly TrajectorySegment[]): number {
  const ends: number[] = [];
  for (const { start, end, parent } of segments) ends.push(end - start + (ends[parent] ?? 0));
  return ends.reduce((longest, end) => Math.max(longest, end), 0);
}

function checkMask({ tokenIds, promptLength, responseMask }: Layout, limits: LayoutLimits, refuse: Refuse): void {
  const { vocabSize = Number.POSITIVE_INFINITY } = limits;
  const { length } = tokenIds;
  if (responseMask.length !== length) refuseLength("responseMask", responseMask, length, refuse);
  for (let t = 0; t < length; t++) {
    const bit = responseMask[t];
    if (bit === 0) continue;
    if (bit !== 1) refuse(`responseMask[${t}]`, "0 or 1", bit);
    if (t < promptLength)
      refuse(`responseMask[${t}]`, `0 for the prompt, which is ${promptLength} tokens (promptLength)`, bit);
    if (isOutside(tokenIds[t]!, vocabSize)) refuse(`responseMask[${t}]`, "0 for an image, which nobody sampled", bit);
  }
}

function refuseLength(field: string, values: ArrayLike<number>, length: number, refuse: Refuse): never {
  return refuse(field, `as long as tokenIds (${length}), prompt included`, `${values.length} values`);
}

/** Rewards belong to sampled tokens. A record without any sampled token has none. */
function checkRewards(field: string, rewards: readonly StepReward[], mask: Uint8Array, refuse: Refuse): void {
  if (rewards.length === 0 || !mask.includes(1)) return;
  for (const [i, { tokenIndex }] of rewards.entries()) {
    const place = `${field}[${i}].tokenIndex`;
    if (tokenIndex >= mask.length) refuse(place, `a whole number below ${mask.length}`, tokenIndex);
    if (mask[tokenIndex] !== 1) refuse(place, "the index of a token with mask 1", `${tokenIndex}, whose mask is 0`);
  }
}

/** Segments lie end to end, cover all tokens, and follow earlier ones. */
function checkSegments(segments: readonly TrajectorySegment[], length: number, refuse: Refuse): void {
  let at = 0;
  for (const [i, { start, end, parent }] of segments.entries()) {
    const field = `segments[${i}]`;
    if (start !== at) refuse(`${field}.start`, `${at}, where the one before it ends`, start);
    checkSpan(field, { start, end }, length, refuse);
    if (parent >= i) refuse(`${field}.parent`, "the index of an earlier segment, or -1", parent);
    at = end;
  }
  if (at !== length) refuse("segments", `segments of all ${length} tokens`, `segments up to token ${at}`);
}

/** Checks that a stretch lies within `length` tokens. */
export function checkSpan(
  field: string,
  { start, end }: { start: number; end: number },
  length: number,
  refuse: Refuse,
): void {
  if (start > length) refuse(`${field}.start`, `a whole number below ${length + 1}`, start);
  if (end > length) refuse(`${field}.end`, `a whole number below ${length + 1}`, end);
  if (end < start) refuse(`${field}.end`, `at least its start (${start})`, end);
}
