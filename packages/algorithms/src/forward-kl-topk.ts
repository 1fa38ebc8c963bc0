import type { LossCandidates } from "@cria/core";

/** The divergence over the teacher's likeliest tokens, by its name in place of an estimate's. */
export const FORWARD_KL_TOPK = "forward_kl_topk";

/** Probability, in [0, 1], that each model gives the candidates of a token together. */
export interface CandidateMass {
  teacher: Float64Array;
  policy: Float64Array;
}

export interface TopkDivergence {
  /** Divergence of each token, in nats, at least 0. */
  divergences: Float64Array;
  /** d divergence / d logprob of each candidate. */
  gradients: Float64Array;
  mass: CandidateMass;
}

/**
 * The forward KL over the teacher's likeliest tokens: the sum of p (log p - log q) over a token's candidates, where p is
 * the teacher's probability and q the policy's. Logprobs below `minLogprob` count as that. Neither model's probabilities
 * of the candidates sum to 1, so the sum may be negative: it then counts as 0, and has no gradient. With all tokens of
 * the vocabulary as candidates it is KL(teacher || policy).
 * @param teacherLogprobs of each candidate.
 */
export function compareLikeliest(
  { count, logprobs }: Pick<LossCandidates, "count" | "logprobs">,
  teacherLogprobs: Float32Array,
  { minLogprob, maxLoss }: { minLogprob: number | null; maxLoss: number | null },
): TopkDivergence {
  const least = minLogprob ?? Number.NEGATIVE_INFINITY;
  const most = maxLoss ?? Number.POSITIVE_INFINITY;
  const tokens = logprobs.length / count;
  const divergences = new Float64Array(tokens);
  const gradients = new Float64Array(logprobs.length);
  const mass = { teacher: new Float64Array(tokens), policy: new Float64Array(tokens) };
  for (let i = 0; i < tokens; i++) {
    let sum = 0;
    for (let k = i * count; k < (i + 1) * count; k++) {
      const [own, wanted] = [logprobs[k]!, teacherLogprobs[k]!];
      mass.policy[i]! += Math.exp(own);
      mass.teacher[i]! += Math.exp(wanted);
      const logTeacher = Math.max(wanted, least);
      const probability = Math.exp(logTeacher);
      // A token that the teacher never says adds nothing, even where the difference of the logprobs is infinite.
      if (probability === 0) continue;
      sum += probability * (logTeacher - Math.max(own, least));
      gradients[k] = own >= least ? -probability : 0;
    }
    divergences[i] = Math.min(most, Math.max(0, sum));
    if (sum < 0 || sum > most) gradients.fill(0, i * count, (i + 1) * count);
  }
  return { divergences, gradients, mass };
}
