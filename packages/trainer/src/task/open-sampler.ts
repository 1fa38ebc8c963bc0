import { ConfigError } from "@cria/core";
import type { RowSampler, RowSamplerOptions } from "@cria/rollout";
import { loadExport, makeRowSampler } from "@cria/rollout/internal";
import type { DataOptions } from "../config/options/data.js";
import { resolvePath } from "../config/paths.js";
import type { Registries } from "../user-code/registries.js";

/** Makes the sampler that chooses the rows of each step, instead of passes over all rows. */
export interface RowSamplerSource {
  /** Name in errors: the config key with its value. */
  name: string;
  /** Makes a new sampler without any history. @throws ConfigError when it does not sample rows. */
  make(options: Pick<RowSamplerOptions, "batchSize" | "seed">): RowSampler;
}

/**
 * Loads the sampler that the options name, before the rows are known; null if they name none.
 * @throws ConfigError when it cannot be loaded, or the name is unknown.
 */
export async function loadSampler(
  { path, name, kwargs }: DataOptions["sampler"],
  folder: string,
  { rowSamplers }: Pick<Registries, "rowSamplers">,
): Promise<((rows: readonly object[]) => RowSamplerSource) | null> {
  if (path === null && name === null) return null;
  if (name === null)
    throw new ConfigError("is missing", {
      code: "config/bad-value",
      subject: "data.sampler.class_name",
      expected: `the name of a class or function that ${path} exports`,
      received: "null",
    });
  const given =
    path === null ? rowSamplers.get(name) : await loadExport(resolvePath(folder, path), name, "data.sampler");
  // Without the path: a run that continues in a moved folder has the same sampler.
  const subject = `data.sampler ${name}`;
  return (rows) => ({
    name: subject,
    make: (options) => makeRowSampler(given, rows, { ...options, kwargs: structuredClone(kwargs) }, subject),
  });
}
