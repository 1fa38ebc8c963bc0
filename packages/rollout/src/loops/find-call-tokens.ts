import type { ParsedTurn } from "@cria/tools";

/**
 * Which tokens of a sampled turn spell its tool calls: from the first call's beginning to the last one's end. Parsers
 * give the text around the calls; what stands before and after in the turn's text frames them.
 * @returns `[start, end)` in tokens of the turn.
 */
export function findCallTokens(
  text: string,
  parsed: ParsedTurn,
  tokenIds: ArrayLike<number>,
  detokenize: (ids: ArrayLike<number>) => string,
): { start: number; end: number } {
  const around = parsed.content;
  let after = 0;
  while (after < around.length && around.at(-1 - after) === text.at(-1 - after)) after++;
  let before = 0;
  while (before < around.length - after && around[before] === text[before]) before++;
  const ids = Array.from(tokenIds);
  // Characters that the first n tokens spell grow with n: bisect.
  const countTokens = (characters: number, atLeast: boolean) => {
    let low = 0;
    let high = ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const length = detokenize(ids.slice(0, middle)).length;
      if (atLeast ? length >= characters : length > characters) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const start = countTokens(before, false) - 1;
  return { start: Math.max(0, start), end: countTokens(text.length - after, true) };
}
