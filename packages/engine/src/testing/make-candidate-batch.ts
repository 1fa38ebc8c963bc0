import type { LossFunction, TrainSequence } from "@cria/core";
import { weightedLogprobs } from "./finite-differences.js";
import { makeNormals } from "./make-tiny-model.js";
import { makeTreeBatch } from "./make-tree-batch.js";

/** Number of candidates of each token. */
export const CANDIDATE_COUNT = 3;

/**
 * The sequences of `makeTreeBatch` with candidates, with a column `weights`: of tokens after equal prefixes, some have the
 * same ones, and some others.
 */
export function makeCandidateBatch(vocabSize = 256): TrainSequence[] {
  const normal = makeNormals(17);
  return makeTreeBatch().map(({ tokenIds, lossMask, columns }, s) => ({
    tokenIds,
    lossMask,
    columns: columns!,
    candidates: {
      count: CANDIDATE_COUNT,
      // The first list repeats an id, and the scored token itself may be a candidate.
      ids: Int32Array.from({ length: tokenIds.length * CANDIDATE_COUNT }, (_, k) => {
        const t = Math.floor(k / CANDIDATE_COUNT);
        if (k % CANDIDATE_COUNT === 0) return tokenIds[t]!;
        return (31 * t + (t % 5 === 0 ? s : 0) + (t % 7 === 0 ? 0 : k % CANDIDATE_COUNT)) % vocabSize;
      }),
      columns: { weights: Float32Array.from({ length: tokenIds.length * CANDIDATE_COUNT }, () => 0.5 * normal()) },
    },
  }));
}

/** The loss of `weightedLogprobs`, and the sum of weight * logprob over the candidates. */
export const weightedCandidates: LossFunction = (inputs) => {
  const { candidates } = inputs;
  const own = weightedLogprobs(inputs);
  const weights = candidates!.columns.weights!;
  const more = candidates!.logprobs.reduce((sum, logprob, k) => sum + weights[k]! * logprob, 0);
  return { ...own, loss: own.loss + more, dCandidates: weights };
};
