import { ConfigError, type LossInputs } from "@cria/core";
import type { PolicyLossParameters } from "../losses/policy-loss-parameters.js";
import type { TokenKind } from "./token-kinds.js";

/** Values of a term at the tokens that it sees, `n` of them. */
export interface LossTermValues {
  /** Loss of each token. */
  losses: ArrayLike<number>;
  /** d (sum of the sequence's losses) / d logprobs[i]. */
  gradients: ArrayLike<number>;
  /** d loss / d entropy of each token. Absent: 0. */
  entropyGradients?: ArrayLike<number>;
  /** d loss / d logprob of each candidate, `candidates.count` for each token. Absent: 0. */
  candidateGradients?: ArrayLike<number>;
  /** Factor of each token's weight, as of a rollout correction. Absent: 1. */
  factors?: ArrayLike<number>;
  /** Values of each token, to aggregate as the losses are, without `factors`. */
  aggregated?: Record<string, ArrayLike<number>>;
  /** Values of each token, to average over the term's tokens of the mini-batch. */
  metrics?: Record<string, ArrayLike<number>>;
  /** This micro-batch's shares of further metrics. */
  shares?: Record<string, number>;
}

/**
 * A named part of a step's loss. The loss of a step is the sum of its terms, each with its own tokens, weight and
 * denominator: coefficient x sum over the term's tokens of (aggregation's weight x row's weight x loss).
 */
export interface LossTerm {
  /** The tokens that the term sees; default "sampled". */
  tokens?: TokenKind;
  /** The only aggregation that the term is defined with; default: the loss's. */
  aggregation?: string;
  /**
   * Evaluates the term at the tokens that it sees, of one micro-batch. Sequences are never split; those in which it
   * sees no token are left out.
   */
  evaluate(inputs: LossInputs, parameters: PolicyLossParameters): LossTermValues;
}

/** Names of the built-in terms whose tokens have the weights of their rows. */
export const weighableTerms = ["policy", "entropy", "reference", "teacher", "observations"] as const;

/** Column with the weight of each token's row in a term; the same for all tokens of a sequence. Absent: 1. */
export const nameWeights = (term: string) => `weight/${term}`;

/** @throws ConfigError for values that are not of as many numbers as there are tokens. */
export function checkTermValues(name: string, values: LossTermValues, { logprobs, candidates }: LossInputs): void {
  const n = logprobs.length;
  const expected: [keyof LossTermValues, unknown, number][] = [
    ["losses", values?.losses, n],
    ["gradients", values?.gradients, n],
    ["entropyGradients", values?.entropyGradients ?? logprobs, n],
    ["candidateGradients", values?.candidateGradients ?? candidates?.ids ?? [], n * (candidates?.count ?? 0)],
    ["factors", values?.factors ?? logprobs, n],
    ...Object.values({ ...values?.aggregated, ...values?.metrics }).map(
      (metric): [keyof LossTermValues, unknown, number] => ["metrics", metric, n],
    ),
  ];
  for (const [part, given, length] of expected) {
    const received = (given as ArrayLike<number> | undefined)?.length;
    const bad = received === length ? Array.prototype.find.call(given, (value) => !Number.isFinite(value)) : undefined;
    if (received === length && bad === undefined) continue;
    throw new ConfigError("returned values that a loss cannot have", {
      code: "config/bad-loss-term",
      subject: `loss term "${name}": ${part}`,
      expected: `${length} finite numbers`,
      received: bad !== undefined ? String(bad) : received === undefined ? "none" : `${received} numbers`,
    });
  }
}
