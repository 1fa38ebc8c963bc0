import type { LossInputs } from "@cria/core";
import type { PolicyLoss } from "../losses/policy-loss.js";
import { averageGeometrically, multiplyCorrections, type TokenCorrections } from "./current-correction.js";
import type { LossTerm } from "./loss-term.js";
import { readColumn } from "./read-column.js";

/** Makes the term of a policy loss: the policy gradient, with rejections and importance weights. */
export function makePolicyTerm(policyLoss: PolicyLoss, correct: (inputs: LossInputs) => TokenCorrections): LossTerm {
  return {
    aggregation: policyLoss.aggregation,
    evaluate: (inputs, parameters) => {
      const { logprobs, offsets, columns } = inputs;
      const oldLogprobs = readColumn(columns, "oldLogprobs");
      const advantages = readColumn(columns, "advantages");
      const tokens = policyLoss.evaluate({ logprobs, oldLogprobs, advantages, offsets, columns }, parameters);
      const { weights: given, lossMask, shares } = correct(inputs);
      const weights = given && policyLoss.correction === "sequence" ? averageGeometrically(given, offsets) : given;
      const factors = multiplyCorrections({ weights, lossMask }, logprobs.length);
      return { ...tokens, ...(factors ? { factors } : {}), shares };
    },
  };
}
