import type { KlEstimate } from "../kl.js";
import type { LossTerm } from "./loss-term.js";
import { readColumn } from "./read-column.js";

/** Makes the term of the KL to the reference policy. */
export const makeReferenceTerm = (estimate: KlEstimate): LossTerm => ({
  evaluate: ({ logprobs, columns }) => {
    const refLogprobs = readColumn(columns, "refLogprobs");
    const losses = new Float64Array(logprobs.length);
    const gradients = new Float64Array(logprobs.length);
    for (let i = 0; i < logprobs.length; i++) {
      const { value, gradient } = estimate(logprobs[i]! - refLogprobs[i]!);
      losses[i] = value;
      gradients[i] = gradient;
    }
    return { losses, gradients };
  },
});
