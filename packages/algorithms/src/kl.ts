import { Registry } from "./registry.js";

/** An estimate of KL(policy || reference) at one token from d = logprob - refLogprob, and its derivative. */
export type KlEstimate = (d: number) => { value: number; gradient: number };

/** Estimators k1, k2, k3 as in Schulman's note (joschu.net/blog/kl-approx.html). */
export const klEstimates = new Registry<KlEstimate>("KL type");

klEstimates.register("k1", (d) => ({ value: d, gradient: 1 }));
klEstimates.register("abs", (d) => ({ value: Math.abs(d), gradient: Math.sign(d) }));
klEstimates.register("k2", (d) => ({ value: (d * d) / 2, gradient: d }));
klEstimates.register("k3", (d) => {
  const clamped = Math.max(-20, Math.min(20, d));
  // expm1 keeps the digits that exp(-d) - 1 + d would cancel near 0, and with them the estimate's sign.
  const value = Math.max(0, Math.expm1(-clamped) + clamped);
  const bounded = Math.min(10, value);
  return { value: bounded, gradient: bounded === value && clamped === d ? -Math.expm1(-clamped) : 0 };
});
for (const [alias, name] of [
  ["kl", "k1"],
  ["mse", "k2"],
  ["low_var_kl", "k3"],
] as const)
  klEstimates.register(alias, klEstimates.get(name));
