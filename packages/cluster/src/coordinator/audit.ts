import type { ShardGradient, ShardScores } from "@cria/core";

/**
 * Compares a worker's gradient with this engine's.
 * @returns the difference; null: none.
 */
export const auditGradient = (found: ShardGradient, own: ShardGradient): string | null =>
  found.loss === own.loss ? compareBits("value of a gradient", found.gradient, own.gradient) : "another loss";

/**
 * Compares a worker's scores with this engine's.
 * @returns the difference; null: none.
 */
export const auditScores = (found: ShardScores, own: ShardScores): string | null =>
  compareBits("logprob", found.logprobs, own.logprobs) ??
  compareBits("entropy", found.entropy, own.entropy) ??
  compareBits("sum of squares", found.squares ?? [], own.squares ?? []) ??
  compareBits("likeliest token", found.likeliest?.ids ?? [], own.likeliest?.ids ?? []) ??
  compareBits("likeliest token's logprob", found.likeliest?.logprobs ?? [], own.likeliest?.logprobs ?? []);

export function compareBits(what: string, found: ArrayLike<number>, own: ArrayLike<number>): string | null {
  if (found.length !== own.length) return `${found.length} instead of ${own.length}: ${what}s`;
  for (let i = 0; i < own.length; i++)
    if (!Object.is(found[i], own[i])) return `${what} ${i} is ${found[i]}, here ${own[i]}`;
  return null;
}
