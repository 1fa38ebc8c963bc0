import type { LossTerm } from "./loss-term.js";
import type { TokenKind } from "./token-kinds.js";

/** -logprob of each token: the model learns to predict it. Always the mean over the term's tokens. */
export const makeCrossEntropy = (tokens: TokenKind): LossTerm => ({
  tokens,
  aggregation: "token-mean",
  evaluate: ({ logprobs }) => ({
    losses: logprobs.map((logprob) => -logprob),
    gradients: new Float32Array(logprobs.length).fill(-1),
  }),
});
