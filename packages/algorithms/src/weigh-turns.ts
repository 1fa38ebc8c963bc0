import type { EstimatorTurn } from "./advantages/advantage-estimator.js";

/**
 * Weights of a teacher's term by turn: min(d_1 / d_k, 1 + delta), where d_k is the mean of |logprob - teacherLogprob| over the tokens of
 * turn k. A turn that has drifted from what the teacher would do is scored by it where it knows little (SOD, arXiv:2605.07725).
 * @param turns in the order of their tokens, as `[start, end)`.
 * @returns of each token its turn's weight; 0 outside of turns.
 */
export function weighTurns(
  logprobs: ArrayLike<number>,
  teacherLogprobs: ArrayLike<number>,
  turns: readonly Pick<EstimatorTurn, "start" | "end">[],
  delta: number,
): Float32Array {
  const weights = new Float32Array(logprobs.length);
  const distances = turns.map(({ start, end }) => {
    let sum = 0;
    for (let t = start; t < end; t++) sum += Math.abs(logprobs[t]! - teacherLogprobs[t]!);
    return sum / Math.max(1, end - start);
  });
  turns.forEach(({ start, end }, k) => {
    const [first, own] = [distances[0]!, distances[k]!];
    // Two turns without a distance are equally near.
    const ratio = own === first ? 1 : first / own;
    weights.fill(Math.min(ratio, 1 + delta), start, end);
  });
  return weights;
}
