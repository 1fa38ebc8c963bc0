import type { DumpLine } from "./dump-line.js";

/**
 * Largest difference between the sampler's and the trainer's probability of a sampled token, to four digits; null
 * without `trainer.rollout_data_detail: full`, which writes both.
 */
export function findMismatch(line: DumpLine): number | null {
  const { old_logprobs: old, rollout_logprobs: sampled, response_mask } = line;
  if (!Array.isArray(old) || !Array.isArray(sampled) || sampled.length !== old.length) return null;
  let largest = 0;
  for (let t = 0; t < old.length; t++)
    if (response_mask[t] === 1) largest = Math.max(largest, Math.abs(Math.exp(old[t]!) - Math.exp(sampled[t]!)));
  return Number.isFinite(largest) ? Number(largest.toPrecision(4)) : null;
}
