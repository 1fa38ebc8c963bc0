import { ConfigError } from "@cria/core";
import {
  type ChecksOf,
  checkOptions,
  isFunction,
  isObject,
  isText,
  optionChecks,
  previewValue,
  refuseOption,
} from "@cria/core/internal";
import {
  type AdvantageEstimator,
  type AdvantageInputs,
  type AdvantageOutputs,
  type CostlyInput,
  costlyInputs,
  type EstimatorState,
} from "./advantage-estimator.js";
import { makeTurns } from "./estimator-turn.js";

/** Inputs that are present for an estimator with these needs. */
export type CostlyInputs<Needs extends CostlyInput> = AdvantageInputs &
  Required<Pick<AdvantageInputs, "turns" | Needs | ("sumPiSquared" extends Needs ? "oldLogprobs" : never)>>;

/** Definition of an advantage estimator. */
export interface EstimatorDefinition<Needs extends CostlyInput = never> {
  /** Name of the estimator in errors; default: that of `estimate`. */
  name?: string;
  /**
   * True if a trajectory's advantage depends on the other rewards of its group. If failures leave fewer than two of
   * a group, there is nothing to compare, and the whole group is dropped; otherwise only the failed conversations
   * are.
   */
  comparesGroup: boolean;
  /** Inputs beside rewards that are computed for it: see `AdvantageEstimator.needs`. Default: none. */
  needs?: readonly Needs[];
  /**
   * A pure function over the conversations that did not fail. If left out, `returns` equal the advantages, and there
   * are no metrics. What it keeps from step to step it returns as `state`, and finds in its inputs again.
   */
  estimate: (inputs: CostlyInputs<Needs>) => Pick<AdvantageOutputs, "advantages"> & Partial<AdvantageOutputs>;
}

const definitionChecks: ChecksOf<Required<EstimatorDefinition>> = {
  name: optionChecks.text,
  comparesGroup: optionChecks.flag,
  needs: [
    (needs) => Array.isArray(needs) && needs.every((need) => costlyInputs.includes(need)),
    `a list of ${costlyInputs.join(", ")}`,
  ],
  estimate: optionChecks.function,
};

/**
 * Makes an advantage estimator of your own: for `train({ advantages })`, `advantages.of`,
 * `advantageEstimators.register`, or by path in a config (`adv_estimator: ./mine.ts#mine`).
 * @throws ConfigError that names the wrong field. The estimator itself throws one, "config/bad-estimator", if its
 * advantages or returns are not one number per token, or its state is not made of numbers.
 */
export function defineEstimator<const Needs extends CostlyInput = never>(
  definition: EstimatorDefinition<Needs>,
): AdvantageEstimator {
  checkOptions("defineEstimator", definition, definitionChecks as ChecksOf<Required<EstimatorDefinition<Needs>>>);
  const { comparesGroup, needs, estimate } = definition;
  requireGiven("comparesGroup", comparesGroup);
  requireGiven("estimate", estimate);
  const name = definition.name ?? (isText(estimate.name) ? estimate.name : "estimate");
  const estimator = (inputs: AdvantageInputs): AdvantageOutputs => {
    const turns = inputs.turns ?? makeTurns(inputs);
    const given = estimate({ ...inputs, turns } as CostlyInputs<Needs>);
    const { returns, metrics = {}, state, ...rest } = isObject(given) ? given : ({} as Partial<AdvantageOutputs>);
    const tokens = inputs.responseMask.length;
    const advantages = readTokens(name, "advantages", rest.advantages, tokens);
    return {
      advantages,
      returns: returns === undefined ? advantages.slice() : readTokens(name, "returns", returns, tokens),
      metrics,
      ...(state === undefined ? {} : { state: readState(name, state) }),
    };
  };
  Object.defineProperty(estimator, "name", { value: name });
  return Object.assign(estimator, { comparesGroup, ...(needs ? { needs } : {}) });
}

function requireGiven(key: string, value: unknown): void {
  if (value !== undefined) return;
  const expected = key === "estimate" ? "a function of AdvantageInputs" : "true or false";
  throw refuseOption(`defineEstimator: ${key}`, "is missing", expected, value);
}

/** Other values would not survive a checkpoint. */
function readState(name: string, state: unknown): EstimatorState {
  if (isObject(state) && Object.values(state).every((value) => Number.isFinite(value))) return state as EstimatorState;
  throw new ConfigError("is not made of numbers", {
    code: "config/bad-estimator",
    subject: `state of the estimator ${name}`,
    expected: "an object whose values are finite numbers",
    received: previewValue(state),
  });
}

function readTokens(name: string, key: string, values: unknown, tokens: number): Float32Array {
  if (values instanceof Float32Array && values.length === tokens) return values;
  const length = (values as ArrayLike<number> | undefined)?.length;
  const isList = isFunction((values as { [Symbol.iterator]?: unknown } | undefined)?.[Symbol.iterator]);
  throw new ConfigError("are not one number for each token", {
    code: "config/bad-estimator",
    subject: `${key} of the estimator ${name}`,
    expected: `a Float32Array of ${tokens}, as long as responseMask`,
    received: isList ? `${(values as object).constructor.name} of ${length}` : previewValue(values),
  });
}
