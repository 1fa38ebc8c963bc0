import type { ParsedTurn } from "@cria/tools";

/**
 * Finds the tokens that spell a sampled turn's tool calls, from the beginning of the first to the end of the last.
 * Parsers return the text around the calls; its ends are matched with the turn's text. White space that parsers keep
 * before a call is excluded.
 * @param text the parsed text: `opening`, which is part of the prompt, then the turn's text.
 * @returns token range `[start, end)` within the turn.
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
  // The number of characters of the first n tokens grows with n: bisect.
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

/**
 * Number of characters before and after the calls: the common prefix and suffix of the text and its content without
 * calls.
 */
function findFrame(text: string, content: string): { before: number; after: number } {
  const lead = countLead(text) - countLead(content);
  const trail = countTrail(text) - countTrail(content);
  // Match the front first: most calls end a turn, and the text before one may end in the same way (`</think>`).
  let before = 0;
  while (before < content.length && content[before] === text[lead + before]) before++;
  let after = 0;
  while (after < content.length - before && content.at(-1 - after) === text.at(-1 - trail - after)) after++;
  return { before: before === 0 ? 0 : lead + before, after: after === 0 ? 0 : trail + after };
}

const countLead = (text: string) => text.length - text.trimStart().length;
const countTrail = (text: string) => text.length - text.trimEnd().length;
