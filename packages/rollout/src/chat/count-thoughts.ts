import type { PolicyEngine } from "@cria/core";

/**
 * How many of an answer's tokens are thoughts, the mark that opens them included.
 * @param opening what the generation prompt says in the answer's name.
 * @param thoughts as the message has them.
 */
export function countThoughts(
  engine: Pick<PolicyEngine, "detokenize" | "tokenize">,
  tokenIds: Int32Array,
  opening: string,
  thoughts: string | undefined,
): number {
  if (!thoughts) return 0;
  const isTold = (count: number) => (opening + engine.detokenize(tokenIds.subarray(0, count))).includes(thoughts);
  // Thoughts of several places, joined, stand nowhere as they are.
  if (!isTold(tokenIds.length)) return Math.min(tokenIds.length, engine.tokenize(thoughts).length);
  let [low, high] = [0, tokenIds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isTold(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
