import { Registry } from "@cria/core";

/** An estimate of KL(policy || reference) at one token from d = logprob - refLogprob, and its derivative. */
export type KlEstimate = (d: number) => { value: number; gradient: number };

/*
 * Estimators of Schulman's note (joschu.net/blog/kl-approx.html). In expectation k1 and k3 have the KL's value, but
 * only k2 has its gradient; hence the variants with "+", which combine another estimate's value with k2's gradient.
 */

/** d: unbiased, noisy, of either sign. */
export const estimateK1: KlEstimate = (d) => ({ value: d, gradient: 1 });

/** |d|. */
export const estimateAbs: KlEstimate = (d) => ({ value: Math.abs(d), gradient: Math.sign(d) });

/** d^2 / 2: biased, never negative. */
export const estimateK2: KlEstimate = (d) => ({ value: (d * d) / 2, gradient: d });

/** exp(-d) + d - 1 with d clamped to ±20 and the result to ±10: unbiased, never negative. */
export const estimateK3: KlEstimate = (d) => {
  const clamped = Math.max(-20, Math.min(20, d));
  // expm1 keeps the digits that exp(-d) - 1 + d would cancel near 0, and so the estimate's sign.
  const value = Math.max(0, Math.expm1(-clamped) + clamped);
  const bounded = Math.min(10, value);
  return { value: bounded, gradient: bounded === value && clamped === d ? -Math.expm1(-clamped) : 0 };
};

const named = {
  k1: estimateK1,
  kl: estimateK1,
  abs: estimateAbs,
  k2: estimateK2,
  mse: estimateK2,
  k3: estimateK3,
  low_var_kl: estimateK3,
} satisfies Record<string, KlEstimate>;

/** A built-in estimate, one with the gradient of k2 ("k3+"), or a name that was registered. */
export type KlName = keyof typeof named | `${keyof typeof named}+` | (string & {});

function withGradientOfK2(estimate: KlEstimate): KlEstimate {
  return (d) => ({ value: estimate(d).value, gradient: d });
}

/** Named by `actor.kl_loss_type` and `algorithm.kl_penalty`. */
export const klEstimates = new Registry<KlEstimate>(
  "KL type",
  {
    ...named,
    ...Object.fromEntries(Object.entries(named).map(([name, estimate]) => [`${name}+`, withGradientOfK2(estimate)])),
  },
  { alternative: "./module.ts#export" },
);
