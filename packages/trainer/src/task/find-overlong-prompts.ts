import type { DatasetRow } from "@cria/rollout";
import { measurePrompts } from "@cria/rollout/internal";
import type { Settings } from "../config/import/settings.js";
import { type Report, WorkReporter } from "../events.js";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "./environment.js";
import { findPromptCache } from "./open-data.js";

/** Opened parts of a task that are needed to measure prompts. */
interface PromptSources {
  settings: Pick<Settings, "data">;
  policy: Policy;
  environment: Environment;
  trainRows: readonly DatasetRow[];
  valRows: readonly DatasetRow[];
  signal?: AbortSignal;
}

/** Up to this many rows are measured at once, without progress reports or a cache. */
const FEW = 1000;

/**
 * Warns of prompts for which `data.truncation: error` will end the run, perhaps hours later, when such a row is
 * drawn; null if all prompts fit.
 * @param folder base of the config's relative paths.
 */
export async function findOverlongPrompts(
  { settings: { data }, policy, environment, trainRows, valRows, signal }: PromptSources,
  folder: string,
  report?: Report,
): Promise<string | null> {
  const { maxPromptLength, truncation, tools, images } = environment;
  if (truncation !== "error" || data.filterOverlongPrompts) return null;
  const rows = [...trainRows, ...valRows];
  const reporter = new WorkReporter(rows.length < FEW ? undefined : report, "measure prompts");
  const lengths = await measurePrompts(rows, {
    engine: policy.engine,
    tokenizer: policy.tokenizer,
    tools,
    templateKwargs: data.templateKwargs,
    allowControlTokens: data.allowControlTokens,
    images,
    cacheFolder: rows.length < FEW ? null : findPromptCache(data, folder),
    onProgress: (done) => reporter.update(done, rows.length),
    signal,
  });
  reporter.end();
  const overlong = rows.filter((_: DatasetRow, i) => lengths[i]! > maxPromptLength);
  if (overlong.length === 0) return null;
  const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
  return (
    `data.max_prompt_length (maxPromptLength of a task): ${overlong.length} of ${rows.length} prompts have more than ${maxPromptLength} tokens, up to ` +
    `${longest}, the first in ${overlong[0]!.place}; the run ends when it draws one: raise it, leave them out ` +
    `(data.filter_overlong_prompts=true) or cut them (data.truncation=left)`
  );
}
