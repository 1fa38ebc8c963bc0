import type { ModelInfo } from "@cria/core";
import type { PackCost } from "./pack-rows.js";

/** Multiply-adds of a row, as packing weighs them: linear layers by token, attention by pair of tokens. */
export function estimateCost(info: ModelInfo): PackCost {
  const embedding = info.vocabSize * info.embeddingSize;
  const perToken = Math.max(1, info.parameterCount - embedding);
  // Scores and mixing, each heads * headSize; the pair matrix is also read and written a few times per head.
  const perTokenPair = info.layerCount * info.headCount * (2 * info.headSize + 24);
  return { perToken, perTokenPair };
}

/** Tokens of a micro-batch when nobody says: enough to fill the cores, little enough to stay near the caches. */
export function chooseMicroBatchTokens(info: ModelInfo): number {
  const bytesPerToken = info.layerCount * info.embeddingSize * 4 * 24;
  return Math.min(8192, Math.max(512, Math.floor((128 << 20) / bytesPerToken)));
}
