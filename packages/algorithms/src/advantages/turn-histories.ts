import type { AdvantageInputs, BranchSegment, EstimatorTurn } from "./advantage-estimator.js";

/**
 * Numbers the histories of turns: turns of a batch get equal numbers if the tokens before them on their paths are
 * equal, and are divided into turns in the same way.
 * @returns null without `tokenIds`.
 */
export function numberHistories(
  { tokenIds, offsets, segments }: Pick<AdvantageInputs, "tokenIds" | "offsets" | "segments">,
  turns: readonly (readonly EstimatorTurn[])[],
): number[][] | null {
  if (!tokenIds) return null;
  const known = new Map<string, number>();
  return turns.map((own, i) => {
    const whole: BranchSegment = { start: 0, end: offsets[i + 1]! - offsets[i]!, parent: -1 };
    const parts = segments?.[i] ?? [whole];
    const numbers: number[] = [];
    for (const turn of own) {
      // A history consists of the previous turn's history and the tokens since that turn began.
      const tokens: number[] = [turn.parent < 0 ? -1 : numbers[turn.parent]!];
      for (const { start, end } of listSince(own[turn.parent], turn, parts))
        for (let t = start; t < end; t++) tokens.push(tokenIds[offsets[i]! + t]!);
      const key = tokens.join();
      if (!known.has(key)) known.set(key, known.size);
      numbers.push(known.get(key)!);
    }
    return numbers;
  });
}

/** Token ranges from the beginning of the previous turn, or of the conversation, to the beginning of this one. */
function listSince(
  before: EstimatorTurn | undefined,
  { segment, start: until }: EstimatorTurn,
  parts: readonly BranchSegment[],
): { start: number; end: number }[] {
  const stretches: { start: number; end: number }[] = [];
  let end = until;
  for (let s = segment; s >= 0; s = parts[s]!.parent) {
    if (s !== segment) end = parts[s]!.end;
    const isReached = before?.segment === s;
    stretches.unshift({ start: isReached ? before.start : parts[s]!.start, end });
    if (isReached) break;
  }
  return stretches;
}
