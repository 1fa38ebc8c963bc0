import { ConfigError, type LossInputs } from "@cria/core";
import type { Aggregation } from "../aggregate.js";
import type { Algorithms } from "../algorithms.js";
import type { PolicyLossOptions } from "../policy-loss-options.js";
import { makeTeacherTerm } from "../teacher-term.js";
import { makeCrossEntropy } from "./cross-entropy-term.js";
import { correctTokens } from "./current-correction.js";
import { entropyTerm } from "./entropy-term.js";
import { checkTermValues, type LossTerm, type LossTermValues, weighableTerms } from "./loss-term.js";
import { makePolicyTerm } from "./policy-term.js";
import { makeReferenceTerm } from "./reference-term.js";
import type { TokenKind } from "./token-kinds.js";

/** A term of one loss. */
export interface ListedTerm {
  /** Names the weights of rows and the counts of the mini-batch. */
  name: string;
  /** Metric of the aggregated loss. */
  metric: string;
  /** Its weight in the loss; with 0 it has no gradient, and its metrics are measured. */
  coefficient: number;
  term: LossTerm;
  aggregate: Aggregation;
}

/**
 * Lists the terms of a loss, in the order in which they are added.
 * @throws ConfigError for an unknown name.
 */
export function listTerms(options: PolicyLossOptions, algorithms: Algorithms): ListedTerm[] {
  const { kl, teacher, entropyCoeff, observationCoeff, demonstrationCoeff, currentCorrection } = options;
  const { policyLosses, aggregations, klEstimates, lossTerms } = algorithms;
  const usual = aggregations.resolve(options.lossAggMode);
  const terms: ListedTerm[] = [];
  const add = (name: string, metric: string, coefficient: number, term: LossTerm) => {
    const aggregate = term.aggregation ? aggregations.get(term.aggregation) : usual;
    terms.push({ name, metric, coefficient, term, aggregate });
  };
  const correct = (inputs: LossInputs) => correctTokens(inputs, currentCorrection);
  const isTaught = teacher === null || teacher.taskRewards;
  add("policy", "pg_loss", isTaught ? 1 : 0, makePolicyTerm(policyLosses.resolve(options.lossMode), correct));
  add("entropy", "entropy", isTaught ? -entropyCoeff : 0, entropyTerm);
  if (kl && isTaught) add("reference", "kl_loss", kl.coefficient, makeReferenceTerm(klEstimates.resolve(kl.type)));
  if (teacher) {
    const coefficient = teacher.taskRewards ? teacher.coefficient : 1;
    add("teacher", "teacher_loss", coefficient, makeTeacherTerm(teacher, algorithms, correct));
  }
  if (observationCoeff !== 0) add("observations", "observation_loss", observationCoeff, makeCrossEntropy("observed"));
  if (demonstrationCoeff !== 0)
    add("demonstrations", "demonstration_loss", demonstrationCoeff, makeCrossEntropy("demonstrated"));
  for (const [name, { term: given, coefficient }] of Object.entries(options.terms)) {
    checkName(name);
    const metric = `loss_terms/${name}`;
    add(name, metric, coefficient, checkTerm(name, metric, lossTerms.resolve(given)));
  }
  return terms;
}

/** The tokens that a term sees. */
export interface TermTokens {
  name: string;
  tokens: TokenKind;
}

/** Lists which tokens the terms of a loss see. @throws ConfigError as `listTerms` */
export function listTermTokens(options: PolicyLossOptions, algorithms: Algorithms): TermTokens[] {
  return listTerms(options, algorithms).map(({ name, term }) => ({ name, tokens: term.tokens ?? "sampled" }));
}

/** A term of the user's: its values are checked, and its metrics are named by it. */
function checkTerm(name: string, metric: string, term: LossTerm): LossTerm {
  const prefix = (values: LossTermValues["metrics"]) =>
    Object.fromEntries(Object.entries(values ?? {}).map(([key, value]) => [`${metric}/${key}`, value]));
  return {
    ...term,
    evaluate: (inputs, parameters) => {
      const values = term.evaluate(inputs, parameters);
      checkTermValues(name, values, inputs);
      return { ...values, metrics: prefix(values.metrics), aggregated: prefix(values.aggregated) };
    },
  };
}

/** @throws ConfigError for the name of a built-in term. */
function checkName(name: string): void {
  const taken = [...weighableTerms, "demonstrations"];
  if (name !== "" && !taken.includes(name)) return;
  throw new ConfigError("is no name for a term of your own", {
    code: "config/bad-value",
    subject: `loss term "${name}"`,
    expected: `any name except ${taken.join(", ")}`,
    received: JSON.stringify(name),
  });
}
