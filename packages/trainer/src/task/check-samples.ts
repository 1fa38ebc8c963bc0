import { ConfigError } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { checkTreeSamples, samplesOf } from "@cria/rollout/internal";
import type { Settings } from "../config/import/settings.js";
import type { Registries } from "../user-code/registries.js";

/**
 * Returns a warning if rows have only one conversation and the estimator compares the conversations of a prompt; null
 * if no row does.
 * @throws ConfigError naming the row, if the estimator cannot use a single conversation; DataError if a row's
 * conversations are no whole
 * trees (`rollout.tree`).
 */
export function checkSamples(
  rows: readonly DatasetRow[],
  { algorithm, sampling }: Pick<Settings, "algorithm" | "sampling">,
  { advantageEstimators }: Pick<Registries, "advantageEstimators">,
): string | null {
  const { advantages } = algorithm;
  if (sampling.tree) checkTreeSamples(rows, sampling.n, sampling.tree);
  if (!advantageEstimators.get(advantages).comparesGroup || sampling.n === 1) return null;
  const alone = rows.filter((row) => samplesOf(row, sampling.n) === 1);
  const [first] = alone;
  if (first === undefined) return null;
  if (advantages === "grpo_passk") {
    throw new ConfigError("compares the best rollout of a prompt with the second", {
      code: "config/bad-value",
      subject: `algorithm.adv_estimator grpo_passk, at row ${first.index} (${first.place})`,
      expected: "at least 2 conversations of each row: __rollout_n__, or samples of a task",
      received: "1",
    });
  }
  return (
    `${alone.length} of ${rows.length} rows ask for one conversation (__rollout_n__, or samples of a task), ` +
    `"${first.uid}" for example, and ${advantages} compares those of a prompt with each other; let them ask for 2 or more`
  );
}
