import { listGroups } from "@cria/algorithms/internal";
import { shuffleIndices } from "@cria/core/internal";

/** Indices of trajectories by their groups, prompts kept together, in an order that the seed decides. */
export function cutMiniBatches(
  groups: readonly string[],
  options: { miniBatchSize: number; shuffle: boolean },
  seed: number,
): number[][] {
  // Failed samples are missing: groups differ in size.
  const prompts = listGroups(groups);
  const order = options.shuffle ? [...shuffleIndices(prompts.length, seed)] : [...prompts.keys()];
  const batches: number[][] = [];
  for (let start = 0; start < order.length; start += options.miniBatchSize)
    batches.push(order.slice(start, start + options.miniBatchSize).flatMap((prompt) => prompts[prompt]!));
  return batches;
}
