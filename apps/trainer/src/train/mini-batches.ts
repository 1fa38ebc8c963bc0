import { shuffleIndices } from "@cria/rollout";

/** Indices of trajectories, prompts kept together, in an order that the seed decides. */
export function cutMiniBatches(
  trajectories: number,
  prompts: number,
  actor: { ppo_mini_batch_size: number; shuffle: boolean },
  seed: number,
): number[][] {
  const n = trajectories / prompts;
  const order = actor.shuffle ? [...shuffleIndices(prompts, seed)] : Array.from({ length: prompts }, (_, i) => i);
  const batches: number[][] = [];
  for (let start = 0; start < prompts; start += actor.ppo_mini_batch_size) {
    batches.push(
      order
        .slice(start, start + actor.ppo_mini_batch_size)
        .flatMap((prompt) => Array.from({ length: n }, (_, k) => prompt * n + k)),
    );
  }
  return batches;
}
