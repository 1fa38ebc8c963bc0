import { ConfigError } from "@cria/core";
import { loadExport, makeRowSampler, type RowSampler, type RowSamplerOptions } from "@cria/rollout";
import type { DataOptions } from "../config/options/data.js";
import { resolvePath } from "../config/paths.js";
import type { Registries } from "../user-code/registries.js";

/** What decides which rows each step is given, in place of passes over all of them. */
export interface RowSamplerSource {
  /** What errors call it: the key of the config with the export or name that it has. */
  name: string;
  /** One that knows nothing yet, for a training. @throws ConfigError when it does not sample rows. */
  make(options: Pick<RowSamplerOptions, "batchSize" | "seed">): RowSampler;
}

/**
 * Loads the sampler that the options name, for rows that are not there yet; null where they name none.
 * @throws ConfigError when it cannot be loaded, or no built-in one has this name.
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
  // Not the path: a run that goes on in a moved folder has the same sampler.
  const subject = `data.sampler ${name}`;
  return (rows) => ({
    name: subject,
    make: (options) => makeRowSampler(given, rows, { ...options, kwargs: structuredClone(kwargs) }, subject),
  });
}
