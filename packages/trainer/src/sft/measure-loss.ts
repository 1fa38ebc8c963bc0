import type { PolicyEngine } from "@cria/core";
import type { SftExample } from "../task/read-examples.js";

export interface MeasureLossOptions {
  /** Number of conversations scored at once. */
  batchSize: number;
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

/**
 * Negative mean logprob of all assistant tokens under the current weights.
 * @throws the signal's reason when it aborts.
 */
export async function measureLoss(
  engine: Pick<PolicyEngine, "score">,
  examples: readonly SftExample[],
  { batchSize, signal, onProgress }: MeasureLossOptions,
): Promise<{ loss: number; tokens: number }> {
  let sum = 0;
  let tokens = 0;
  for (let start = 0; start < examples.length; start += batchSize) {
    signal?.throwIfAborted();
    const batch = examples.slice(start, start + batchSize);
    const scores = await engine.score(
      batch.map(({ tokenIds, lossMask }) => ({ tokenIds, from: Math.max(1, lossMask.indexOf(1)) })),
      { signal },
    );
    for (const [i, { lossMask }] of batch.entries()) {
      const { logprobs } = scores[i]!;
      for (let t = 1; t < lossMask.length; t++) {
        if (!lossMask[t]) continue;
        sum -= logprobs[t]!;
        tokens++;
      }
    }
    onProgress?.(Math.min(start + batchSize, examples.length), examples.length);
  }
  return { loss: sum / Math.max(1, tokens), tokens };
}
