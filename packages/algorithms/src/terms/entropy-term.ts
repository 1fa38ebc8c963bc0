import type { LossTerm } from "./loss-term.js";

/** The entropy of each token's distribution, in nats. */
export const entropyTerm: LossTerm = {
  evaluate: ({ entropy }) => ({
    losses: entropy,
    gradients: new Float32Array(entropy.length),
    entropyGradients: new Float32Array(entropy.length).fill(1),
  }),
};
