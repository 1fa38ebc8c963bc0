import { type LoadedConfig, loadConfig } from "@cria/trainer";
import type { z } from "zod";

/**
 * A command's config; keys without an effect are reported on stderr.
 * @throws ConfigError
 */
export function readConfig<T extends z.ZodType>(
  schema: T,
  file: string,
  overrides: readonly string[] = [],
): LoadedConfig<z.infer<T>> {
  const loaded = loadConfig(schema, file, overrides);
  for (const warning of loaded.warnings) process.stderr.write(`warning: ${file}: ${warning}\n`);
  return loaded;
}
