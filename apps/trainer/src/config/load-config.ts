import { readFileSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { ConfigError } from "@cria/core";
import { parse as parseYaml } from "yaml";
import type { z } from "zod";
import { applyOverride } from "./apply-override.js";
import { checkConfig } from "./check-config.js";
import { isMapping } from "./ignored-keys.js";
import { refuseKeys } from "./pending-keys.js";
import { describeSetAside, setAsideForeignKeys } from "./set-aside-keys.js";

/** A config as read: its values, and the folder that relative paths in it start from. */
export interface LoadedConfig<T> {
  values: T;
  folder: string;
}

/**
 * Reads a YAML file, applies `key.path=value` overrides (values are YAML), and checks it.
 * @throws ConfigError: unreadable file, bad override, unknown keys (each with the nearest that has an effect), wrong value.
 */
export function loadConfig<T extends z.ZodType>(
  schema: T,
  file: string,
  overrides: readonly string[] = [],
): LoadedConfig<z.infer<T>> {
  let raw: unknown;
  try {
    raw = parseYaml(readFileSync(file, "utf8")) ?? {};
  } catch (cause) {
    throw new ConfigError("cannot be read", {
      code: "config/unreadable",
      subject: file,
      expected: "a readable YAML file",
      received: (cause as Error).message,
      cause,
    });
  }
  if (!isMapping(raw)) {
    throw new ConfigError("is not a mapping", {
      code: "config/bad-file",
      subject: file,
      expected: "keys and values",
      received: Array.isArray(raw) ? "a list" : typeof raw,
    });
  }
  for (const override of overrides) applyOverride(raw, override);
  const { setAside, refusals } = setAsideForeignKeys(raw);
  for (const warning of describeSetAside(setAside)) process.stderr.write(`warning: ${file}: ${warning}\n`);
  refuseKeys(refusals, file);
  return { values: checkConfig(schema, raw, file), folder: dirname(resolve(file)) };
}

/** A path of a config, seen from the config's folder. */
export function resolvePath(folder: string, path: string): string {
  return isAbsolute(path) ? path : resolve(folder, path);
}
