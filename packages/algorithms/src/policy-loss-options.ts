import type { Aggregation, AggregationName } from "./aggregate.js";
import type { KlEstimate, KlName } from "./kl.js";
import type { PolicyLoss } from "./losses/policy-loss.js";
import { parameterDefaults, termDefaults } from "./losses/policy-loss-defaults.js";
import type { PolicyLossParameters, PolicyLossTerms } from "./losses/policy-loss-parameters.js";
import type { PolicyLossName } from "./losses/policy-losses.js";
import type { RolloutCorrectionOptions } from "./rollout-correction.js";
import type { TeacherTermOptions } from "./teacher-term.js";
import type { LossTerm } from "./terms/loss-term.js";

export interface PolicyLossOptions extends PolicyLossParameters, PolicyLossTerms {
  /** A policy loss, or the name of one. */
  lossMode: PolicyLossName | PolicyLoss;
  /**
   * An aggregation or the name of one, for entropy and KL, and for the policy loss unless that requires a specific one.
   */
  lossAggMode: AggregationName | Aggregation;
  /** null: no KL term; else the batch needs a column `refLogprobs`. */
  kl: { coefficient: number; type: KlName | KlEstimate } | null;
  /** null: there is no teacher; else the batch needs a column `teacherLogprobs`, or candidates with one. */
  teacher: TeacherTermOptions | null;
  /**
   * For batches whose `oldLogprobs` are the sampler's: weights and rejections of the current policy against the
   * sampler, computed in the loss. Rejected tokens have loss 0, but count in the denominators, because a micro-batch
   * does not know what others reject. null: the batch was corrected beforehand, or not at all.
   */
  currentCorrection: RolloutCorrectionOptions | null;
  /** Further terms by names of your own, each an object or the name of a registered one, with its weight in the loss. */
  terms: Readonly<Record<string, { term: string | LossTerm; coefficient: number }>>;
}

export const defaultPolicyLoss: PolicyLossOptions = {
  ...parameterDefaults,
  ...termDefaults,
  lossMode: "vanilla",
  lossAggMode: "token-mean",
  kl: null,
  teacher: null,
  currentCorrection: null,
  terms: {},
};
