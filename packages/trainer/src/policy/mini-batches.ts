import { listGroups } from "@cria/algorithms/internal";
import { shuffleIndices } from "@cria/core/internal";

/**
 * Splits indices of trajectories into mini-batches that keep each prompt together, in an order determined by the seed.
 */
export function cutMiniBatches(
  groups: readonly string[],
  options: { miniBatchSize: number; shuffle: boolean },
  seed: number,
): number[][] {
  // Groups differ in size, because failed samples are missing.
  const prompts = listGroups(groups);
  const order = options.shuffle ? [...shuffleIndices(prompts.length, seed)] : [...prompts.keys()];
  const batches: number[][] = [];
  for (let start = 0; start < order.length; start += options.miniBatchSize)
    batches.push(order.slice(start, start + options.miniBatchSize).flatMap((prompt) => prompts[prompt]!));
  return batches;
}
