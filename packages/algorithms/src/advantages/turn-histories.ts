import type { AdvantageInputs, BranchSegment, EstimatorTurn } from "./advantage-estimator.js";

/**
 * Of each turn a number that stands for what is before it on its path: equal in the batch where the same tokens are, and turns begin
 * at the same ones.
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
      // A history is that of the turn before, and the tokens since then.
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

/** The stretches of tokens from the beginning of the turn before, or of the conversation, to that of this turn. */
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
