import type { PolicyEngine } from "@cria/core";

/**
 * Number of thought tokens in an answer, the opening mark included.
 * @param opening the part of the answer that the generation prompt already contains.
 * @param thoughts the message's thoughts.
 */
export function countThoughts(
  engine: Pick<PolicyEngine, "detokenize" | "tokenize">,
  tokenIds: Int32Array,
  opening: string,
  thoughts: string | undefined,
): number {
  if (!thoughts) return 0;
  const isTold = (count: number) => (opening + engine.detokenize(tokenIds.subarray(0, count))).includes(thoughts);
  // Thoughts joined from several places do not occur as one text.
  if (!isTold(tokenIds.length)) return Math.min(tokenIds.length, engine.tokenize(thoughts).length);
  let [low, high] = [0, tokenIds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isTold(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
