import { clampLogRatio, isWithinClamp } from "./log-ratio.js";
import type { PolicyLossInputs, TokenLoss } from "./policy-loss.js";

/** Values of one token for a loss that evaluates each token by itself. */
export interface TokenInputs {
  logprob: number;
  oldLogprob: number;
  /** log r, clamped to ±20. */
  logRatio: number;
  /** r = exp(logRatio). */
  ratio: number;
  /** True if log r is within the clamp; outside of it the derivative of r is 0. */
  isWithinClamp: boolean;
  advantage: number;
}

/** Loss of a token, its derivative by the token's logprob, and the token's value of each additional metric. */
export type EvaluatedToken<Metric extends string> = { loss: number; gradient: number } & Record<Metric, number>;

/**
 * Evaluates a loss token by token.
 * @param metrics names of the values that `evaluate` returns for each token in addition to loss and gradient.
 * `ppo_kl` is always included: -log r, whose mean is the k1 estimate of KL(old, new).
 */
export function evaluateTokens<Metric extends string = never>(
  { logprobs, oldLogprobs, advantages }: PolicyLossInputs,
  metrics: readonly Metric[],
  evaluate: (token: TokenInputs, index: number) => EvaluatedToken<Metric>,
): TokenLoss {
  const n = logprobs.length;
  const losses = new Float64Array(n);
  const gradients = new Float64Array(n);
  const ppo_kl = new Float64Array(n);
  const columns = metrics.map((name) => ({ name, values: new Float64Array(n) }));
  for (let i = 0; i < n; i++) {
    const [logprob, oldLogprob] = [logprobs[i]!, oldLogprobs[i]!];
    const logRatio = clampLogRatio(logprob, oldLogprob);
    const token = {
      logprob,
      oldLogprob,
      logRatio,
      ratio: Math.exp(logRatio),
      isWithinClamp: isWithinClamp(logprob, oldLogprob),
      advantage: advantages[i]!,
    };
    const evaluated = evaluate(token, i);
    losses[i] = evaluated.loss;
    gradients[i] = evaluated.gradient;
    ppo_kl[i] = -logRatio;
    for (const { name, values } of columns) values[i] = evaluated[name];
  }
  const further = Object.fromEntries(columns.map(({ name, values }) => [name, values]));
  return { losses, gradients, metrics: { ...further, ppo_kl } };
}
