import type { ModelInfo } from "@cria/core";
import type { PackCost } from "./pack-rows.js";

/**
 * Cost of a row for packing: linear layers by token, attention by pair of tokens (7 products of headSize forward and
 * backward against 3 of the linear layers', and 2.5 times slower each; measured on the embedded policy).
 * `attendsBlockwise` of the addon decides which pairs count.
 */
export function estimateCost(info: ModelInfo, attendsBlockwise: boolean): PackCost {
  const embedding = info.vocabSize * info.embeddingSize;
  const perToken = Math.max(1, info.parameterCount - embedding);
  const perTokenPair = info.layerCount * info.headCount * info.headSize * 6;
  return { perToken, perTokenPair, pairs: attendsBlockwise ? "seen" : "all" };
}

/** Default number of tokens of a micro-batch: enough to use all cores, few enough to stay in the caches. */
export function chooseMicroBatchTokens(info: ModelInfo): number {
  const bytesPerToken = info.layerCount * info.embeddingSize * 4 * 24;
  return Math.min(8192, Math.max(512, Math.floor((128 << 20) / bytesPerToken)));
}
