import type { ParsedTurn } from "@cria/tools";

/**
 * Which tokens of a sampled turn spell its tool calls: from the first call's beginning to the last one's end. Parsers
 * give the text around the calls; what stands before and after in the turn's text frames them. Space that parsers keep in front of a
 * call is no part of it.
 * @param text what the parser was given: the turn's text, behind `opening`, which the prompt has said and no token spells.
 * @returns `[start, end)` in tokens of the turn.
 */
export function findCallTokens(
  text: string,
  parsed: Pick<ParsedTurn, "content">,
  tokenIds: Int32Array,
  detokenize: (ids: Int32Array) => string,
  opening = "",
): { start: number; end: number } {
  const said = text.slice(opening.length);
  const { content } = parsed;
  const { before, after } = findFrame(said, content.startsWith(opening) ? content.slice(opening.length) : content);
  // Characters that the first n tokens spell grow with n: bisect.
  const countTokens = (characters: number, atLeast: boolean) => {
    let low = 0;
    let high = tokenIds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { length } = detokenize(tokenIds.subarray(0, middle));
      if (atLeast ? length >= characters : length > characters) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return { start: Math.max(0, countTokens(before, false) - 1), end: countTokens(said.length - after, true) };
}

/** Characters before and after the calls: what the text shares with its content, which lost the calls, and space at its ends. */
function findFrame(text: string, content: string): { before: number; after: number } {
  const lead = countLead(text) - countLead(content);
  const trail = countTrail(text) - countTrail(content);
  // From the front first: calls mostly end a turn, and what stands before one may well end like it (`</think>`).
  let before = 0;
  while (before < content.length && content[before] === text[lead + before]) before++;
  let after = 0;
  while (after < content.length - before && content.at(-1 - after) === text.at(-1 - trail - after)) after++;
  return { before: before === 0 ? 0 : lead + before, after: after === 0 ? 0 : trail + after };
}

const countLead = (text: string) => text.length - text.trimStart().length;
const countTrail = (text: string) => text.length - text.trimEnd().length;
