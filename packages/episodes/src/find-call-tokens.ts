import type { ParsedTurn } from "@cria/tools";

/**
 * Which tokens of a sampled turn spell its tool calls: from the first call's beginning to the last one's end. Parsers
 * give the text around the calls; what stands before and after in the turn's text frames them.
 * @param text what the parser was given: the turn's text, behind `opening`, which the prompt has said and no token spells.
 * @returns `[start, end)` in tokens of the turn.
 */
export function findCallTokens(
  text: string,
  parsed: ParsedTurn,
  tokenIds: ArrayLike<number>,
  detokenize: (ids: ArrayLike<number>) => string,
  opening = "",
): { start: number; end: number } {
  const around = parsed.content;
  // From the front first: calls mostly end a turn, and what stands before one may well end like it (`</think>`).
  let before = 0;
  while (before < around.length && around[before] === text[before]) before++;
  let after = 0;
  while (after < around.length - before && around.at(-1 - after) === text.at(-1 - after)) after++;
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
  const start = countTokens(Math.max(0, before - opening.length), false) - 1;
  return { start: Math.max(0, start), end: countTokens(text.length - opening.length - after, true) };
}
