import { defaultPolicyLoss, type PolicyLossOptions } from "@cria/algorithms";
import { policyLossParameters, policyLossTerms } from "@cria/algorithms/schemas";
import { readKey } from "../raw-config.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";
import { importCorrection } from "./correction.js";
import { importTeacherTerm } from "./distillation.js";

const numbers = { ...policyLossParameters.shape, ...policyLossTerms.shape };
const ACTOR = "actor_rollout_ref.actor";

/** Keys of numbers of a loss, by their options. */
const numberKeys = (Object.keys(numbers) as (keyof typeof numbers)[]).flatMap((option) => {
  const key = trainKeys.find(numbers[option]);
  return key === undefined ? [] : [[option, key] as const];
});

/** Options of a loss, and the config keys that say the same. */
export const lossKeys: readonly (readonly [option: string, key: string])[] = [
  ["lossMode", `${ACTOR}.policy_loss.loss_mode`],
  ["lossAggMode", `${ACTOR}.loss_agg_mode`],
  ["clipRatioLow", `${ACTOR}.clip_ratio_low`],
  ["clipRatioHigh", `${ACTOR}.clip_ratio_high`],
  ["kl.coefficient", `${ACTOR}.kl_loss_coef`],
  ["kl.type", `${ACTOR}.kl_loss_type`],
  ["terms", `${ACTOR}.loss_terms`],
  ...numberKeys,
];

/**
 * Reads the loss from a config. `clip_ratio` is the default of both sides. With bypass_mode the loss itself corrects
 * for the sampler: for ppo_clip the ratio is the importance weight, so no further weights apply.
 * @throws ConfigError as `importCorrection`.
 */
export function importLoss(
  config: Pick<TrainConfig, "actor_rollout_ref" | "algorithm" | "distillation">,
): PolicyLossOptions {
  const { actor } = config.actor_rollout_ref;
  const { bypass_mode, loss_type } = config.algorithm.rollout_correction;
  const correction = bypass_mode ? importCorrection(config.algorithm) : null;
  return {
    ...trainKeys.read(config, policyLossParameters),
    ...trainKeys.read(config, policyLossTerms),
    lossMode: nameLoss(config),
    lossAggMode: actor.loss_agg_mode,
    clipRatioLow: actor.clip_ratio_low ?? actor.clip_ratio,
    clipRatioHigh: actor.clip_ratio_high ?? actor.clip_ratio,
    kl: actor.use_kl_loss ? { coefficient: actor.kl_loss_coef, type: actor.kl_loss_type } : null,
    teacher: importTeacherTerm(config),
    terms: actor.loss_terms,
    currentCorrection: correction && loss_type === "ppo_clip" ? { ...correction, rolloutIs: null } : correction,
  };
}

/** Name of the registered loss; with bypass_mode, `loss_type` may select it. */
function nameLoss({ actor_rollout_ref, algorithm }: Pick<TrainConfig, "actor_rollout_ref" | "algorithm">): string {
  const { loss_mode } = actor_rollout_ref.actor.policy_loss;
  const { bypass_mode, loss_type } = algorithm.rollout_correction;
  if (bypass_mode && loss_type === "reinforce") return "gpg";
  return loss_mode === "bypass_mode" ? "vanilla" : loss_mode;
}

/**
 * Keys and values that set a loss in a raw config, overriding all of its keys for the loss. Defaults are left out
 * unless the raw config sets their keys.
 * @param name registers a value in memory and returns its name.
 */
export function exportLoss(
  loss: Omit<PolicyLossOptions, "currentCorrection">,
  raw: object,
  name: (
    registry: "policyLosses" | "aggregations" | "klEstimates" | "lossTerms",
    value: unknown,
    as?: string,
  ) => string,
): [key: string, value: unknown][] {
  const { kl } = loss;
  const perhaps: [key: string, value: unknown, usual: unknown][] = [[`${ACTOR}.use_kl_loss`, kl !== null, false]];
  for (const [option, key] of numberKeys) perhaps.push([key, loss[option], defaultPolicyLoss[option]]);
  const keys: [key: string, value: unknown][] = [
    [`${ACTOR}.policy_loss.loss_mode`, name("policyLosses", loss.lossMode)],
    [`${ACTOR}.loss_agg_mode`, name("aggregations", loss.lossAggMode)],
    [`${ACTOR}.clip_ratio_low`, loss.clipRatioLow],
    [`${ACTOR}.clip_ratio_high`, loss.clipRatioHigh],
  ];
  for (const [key, value, usual] of perhaps)
    if (value !== usual || readKey(raw, key) !== undefined) keys.push([key, value]);
  const terms = Object.entries(loss.terms).map(([own, { term, coefficient }]) => [
    own,
    { term: name("lossTerms", term, own), coefficient },
  ]);
  if (terms.length > 0 || readKey(raw, `${ACTOR}.loss_terms`) !== undefined)
    keys.push([`${ACTOR}.loss_terms`, Object.fromEntries(terms)]);
  if (kl) keys.push([`${ACTOR}.kl_loss_coef`, kl.coefficient], [`${ACTOR}.kl_loss_type`, name("klEstimates", kl.type)]);
  return keys;
}
