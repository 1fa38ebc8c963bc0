import { DataError, type LossCandidates, type LossFunction, type LossInputs } from "@cria/core";
import { pickRows } from "@cria/core/internal";

/** Column that is 1 at tokens of observations, which others wrote: text of tools' answers. Absent: there are none. */
export const OBSERVED = "observed";

/**
 * Adds the cross-entropy of observations to a policy loss: the policy also learns to predict what tools answer (ECHO,
 * as prime-rl computes it). Tokens with 1 in the column `observed` are the term's; the policy loss sees all others,
 * and is the same, bit for bit, as without the term. The term is `coefficient` times the mean of -logprob over the
 * mini-batch's observed tokens, `totals.observed`; the metric `observation_loss` is that mean, in nats.
 * @param coefficient above 0.
 */
export function addObservationTerm(policyLoss: LossFunction, coefficient: number): LossFunction {
  return (inputs) => {
    const { logprobs, columns, candidates, totals } = inputs;
    const observed = columns[OBSERVED];
    if (!observed?.includes(1)) {
      const own = policyLoss(inputs);
      return { ...own, metrics: { ...own.metrics, observation_loss: 0 } };
    }
    if (totals.observed === undefined) {
      throw new DataError("is missing from the totals of the batch", {
        code: "data/missing-total",
        subject: "totals.observed",
        expected: "the number of observed tokens in the mini-batch",
        received: Object.keys(totals).join(", "),
      });
    }
    const kept: number[] = [];
    for (let i = 0; i < logprobs.length; i++) if (!observed[i]) kept.push(i);
    const own = policyLoss(selectTokens(inputs, kept));
    const share = coefficient / Math.max(1, totals.observed);
    const dLogprobs = new Float32Array(logprobs.length);
    let sum = 0;
    for (let i = 0; i < logprobs.length; i++) {
      if (!observed[i]) continue;
      sum -= logprobs[i]!;
      dLogprobs[i] = -share;
    }
    const { dEntropy, dCandidates } = own;
    const entropyGradient = dEntropy ? new Float32Array(logprobs.length) : undefined;
    const count = candidates?.count ?? 0;
    const candidateGradient = dCandidates ? new Float32Array(logprobs.length * count) : undefined;
    kept.forEach((i, k) => {
      dLogprobs[i] = own.dLogprobs[k]!;
      if (dEntropy) entropyGradient![i] = dEntropy[k]!;
      if (dCandidates) candidateGradient!.set(dCandidates.subarray(k * count, (k + 1) * count), i * count);
    });
    return {
      loss: own.loss + share * sum,
      dLogprobs,
      dEntropy: entropyGradient,
      dCandidates: candidateGradient,
      metrics: { ...own.metrics, observation_loss: sum / Math.max(1, totals.observed) },
    };
  };
}

/** The candidates of only some tokens. */
function selectCandidates({ count, ids, logprobs, columns }: LossCandidates, kept: readonly number[]): LossCandidates {
  return {
    count,
    ids: pickRows(ids, kept, count),
    logprobs: pickRows(logprobs, kept, count),
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, pickRows(values, kept, count)])),
  };
}

/** The micro-batch with only some of its tokens. */
function selectTokens(inputs: LossInputs, kept: readonly number[]): LossInputs {
  let next = 0;
  const offsets = inputs.offsets.map((offset) => {
    while (next < kept.length && kept[next]! < offset) next++;
    return next;
  });
  const columns = Object.entries(inputs.columns).filter(([name]) => name !== OBSERVED);
  return {
    ...inputs,
    offsets,
    logprobs: pickRows(inputs.logprobs, kept),
    entropy: pickRows(inputs.entropy, kept),
    columns: Object.fromEntries(columns.map(([name, values]) => [name, pickRows(values, kept)])),
    ...(inputs.candidates ? { candidates: selectCandidates(inputs.candidates, kept) } : {}),
  };
}
