import { weighableTerms } from "@cria/algorithms/internal";
import { ConfigError, DataError } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import type { Settings } from "../config/import/settings.js";
import { lossWeights } from "../config/options/loss-weights.js";
import type { LossWeights } from "../policy/mix-mini-batch.js";
import { readField } from "../task/read-field.js";

/**
 * Reads the weights of each row in the terms of the loss.
 * @returns weights by index of row; null: all are 1.
 * @throws ConfigError or DataError for a weight of a term that the loss does not have.
 */
export function readLossWeights(
  { loss, lossWeights: { key, rows } }: Pick<Settings, "loss" | "lossWeights">,
  trainRows: readonly DatasetRow[],
): ReadonlyMap<number, LossWeights> | null {
  const terms = [...weighableTerms, ...Object.keys(loss.terms)];
  for (const [value, weights] of Object.entries(rows)) {
    const term = findUnknown(weights, terms);
    if (term !== undefined)
      throw new ConfigError("weighs a term that the loss does not have", {
        code: "config/bad-value",
        subject: "actor_rollout_ref.actor.loss_weights.rows",
        expected: terms.join(", "),
        received: `${term}, for the rows of ${value}`,
      });
  }
  const found = new Map<number, LossWeights>();
  for (const row of trainRows) {
    const value = readField(row, key);
    const weights =
      typeof value === "object" && value !== null
        ? checkOwn(value, `row ${row.place}: ${key}`, terms)
        : rows[String(value)];
    if (weights && Object.values(weights).some((weight) => weight !== 1)) found.set(row.index, weights);
  }
  return found.size > 0 ? found : null;
}

/** Weights that stand in a row. */
function checkOwn(value: object, subject: string, terms: readonly string[]): LossWeights {
  const { data, success } = lossWeights.safeParse(value);
  if (success && findUnknown(data, terms) === undefined) return data;
  throw new DataError("has no weights of terms of the loss", {
    code: "data/bad-row",
    subject,
    expected: `{ term: number of at least 0 }, with terms of ${terms.join(", ")}`,
    received: JSON.stringify(value).slice(0, 200),
  });
}

const findUnknown = (weights: object, terms: readonly string[]) =>
  Object.keys(weights).find((term) => !terms.includes(term));
