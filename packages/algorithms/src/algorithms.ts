import type { Registry } from "@cria/core";
import { advantageEstimators } from "./advantages/advantage-estimators.js";
import type { AdvantageEstimator } from "./advantages/index.js";
import { type Aggregation, aggregations } from "./aggregate.js";
import { type KlEstimate, klEstimates } from "./kl.js";
import type { PolicyLoss } from "./losses/policy-loss.js";
import { policyLosses } from "./losses/policy-losses.js";
import type { LossTerm } from "./terms/loss-term.js";
import { lossTerms } from "./terms/loss-terms.js";

/** Registries that resolve names of algorithms. */
export interface Algorithms {
  advantageEstimators: Registry<AdvantageEstimator>;
  policyLosses: Registry<PolicyLoss>;
  aggregations: Registry<Aggregation>;
  klEstimates: Registry<KlEstimate>;
  lossTerms: Registry<LossTerm>;
}

/** The built-in entries, and those that the program registers. */
export const defaultAlgorithms: Algorithms = {
  advantageEstimators,
  policyLosses,
  aggregations,
  klEstimates,
  lossTerms,
};
