import { DataError } from "@cria/core";
import type { DatasetRow } from "./dataset-row.js";
import { type MeasureOptions, measurePrompts } from "./prompt-lengths.js";

/**
 * Keeps the rows whose prompt has at most `maxPromptLength` tokens, in their order, with unchanged `index` and
 * `uid`.
 * @throws DataError when none is left.
 */
export async function filterOverlongPrompts(
  rows: readonly DatasetRow[],
  maxPromptLength: number,
  options: MeasureOptions,
): Promise<DatasetRow[]> {
  const lengths = await measurePrompts(rows, options);
  const kept = rows.filter((_, i) => lengths[i]! <= maxPromptLength);
  if (kept.length > 0 || rows.length === 0) return kept;
  throw new DataError("has no prompt that fits", {
    code: "data/empty",
    subject: `dataset of ${rows.length} rows (${rows[0]!.place} and following)`,
    expected: `prompts of at most ${maxPromptLength} tokens: maxPromptLength of the task, data.max_prompt_length of a config`,
    received: `prompts of ${lengths.reduce((a, b) => Math.min(a, b))} to ${lengths.reduce((a, b) => Math.max(a, b))} tokens`,
    remedy: "raise it",
  });
}
