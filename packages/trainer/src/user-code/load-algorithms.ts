import { type Algorithms, costlyInputs } from "@cria/algorithms";
import { ConfigError, type Registry } from "@cria/core";
import { importExport } from "@cria/tools/internal";
import type { TrainConfig } from "../config/train-config.js";

/**
 * Registers the algorithms that a config names as "module#export", under that name: advantage estimators, policy
 * losses and further terms of the loss, aggregations, KL estimates. Relative modules are resolved from `folder`.
 * @param algorithms the run's own registries.
 * @throws ConfigError when one cannot be loaded or is of another kind.
 */
export async function loadAlgorithms(
  { algorithm, actor_rollout_ref }: TrainConfig,
  folder: string,
  algorithms: Algorithms,
): Promise<void> {
  const { actor } = actor_rollout_ref;
  const load = async <T>(
    registry: Registry<T>,
    key: string,
    name: string,
    expected: string,
    isValid: (value: unknown) => boolean,
  ) => {
    if (!name.includes("#")) return;
    const value = await importExport(name, folder, key);
    if (!isValid(value)) {
      throw new ConfigError("is of another kind", {
        code: "config/bad-value",
        subject: `${key} "${name}"`,
        expected,
        received: typeof value,
      });
    }
    registry.register(name, value as T);
  };
  const isFunction = (value: unknown) => typeof value === "function";
  const isLoss = (value: unknown) => isFunction((value as { evaluate?: unknown } | null)?.evaluate);
  const { advantageEstimators, policyLosses, aggregations, klEstimates, lossTerms } = algorithms;
  const anEstimator = `a function from AdvantageInputs to AdvantageOutputs; its \`needs\`, if any, of ${costlyInputs.join(", ")}; its \`comparesGroup\`, if any, true or false`;
  const isEstimator = (value: unknown) => {
    const { needs = [], comparesGroup = false } = (value ?? {}) as { needs?: unknown; comparesGroup?: unknown };
    const knowsNeeds = Array.isArray(needs) && needs.every((need) => costlyInputs.includes(need));
    return isFunction(value) && knowsNeeds && typeof comparesGroup === "boolean";
  };
  const aKl = "a function from logprob - refLogprob to { value, gradient }";
  await load(advantageEstimators, "algorithm.adv_estimator", algorithm.adv_estimator, anEstimator, isEstimator);
  await load(klEstimates, "algorithm.kl_penalty", algorithm.kl_penalty, aKl, isFunction);
  await load(klEstimates, "actor.kl_loss_type", actor.kl_loss_type, aKl, isFunction);
  await load(aggregations, "actor.loss_agg_mode", actor.loss_agg_mode, "an Aggregation", isFunction);
  const { loss_mode } = actor.policy_loss;
  await load(policyLosses, "actor.policy_loss.loss_mode", loss_mode, "a PolicyLoss with evaluate()", isLoss);
  for (const [name, { term }] of Object.entries(actor.loss_terms))
    await load(lossTerms, `actor.loss_terms.${name}.term`, term, "a LossTerm with evaluate()", isLoss);
}
