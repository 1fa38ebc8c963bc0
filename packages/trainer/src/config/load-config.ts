import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError, readOrThrow } from "@cria/core";
import { parseYamlDocument, type YamlDocument } from "@cria/tools/internal";
import { isMap, isNode, isScalar, isSeq, type Scalar } from "yaml";
import type { z } from "zod";
import { applyOverride } from "./apply-override.js";
import { checkConfig } from "./check-config.js";
import { describeShellRule, resolveRawPaths, type TypedPaths } from "./paths.js";
import { isMapping, readKey } from "./raw-config.js";
import { refuseKeys } from "./verl/refuse-keys.js";
import { describeSetAside, setAsideForeignKeys } from "./verl/set-aside-keys.js";

/** A parsed config. */
export interface LoadedConfig<T> {
  values: T;
  /** Base of relative paths in the config: its file's folder. */
  folder: string;
  /** Keys whose paths came from overrides; these paths are absolute. */
  typed: TypedPaths;
  file: string;
  /** Keys of the file that have no effect, with the reasons. */
  warnings: string[];
}

/**
 * Reads a YAML file, applies `key.path=value` overrides (values are YAML), and checks it. `paths.ts` describes how
 * relative paths are resolved.
 * @throws ConfigError: unreadable file, bad override, unknown keys (each with the nearest known one), wrong value.
 */
export function loadConfig<T extends z.ZodType>(
  schema: T,
  file: string,
  overrides: readonly string[] = [],
): LoadedConfig<z.infer<T>> {
  const read = () => parseYamlDocument(readFileSync(file, "utf8"));
  const parsed = readOrThrow(read, ConfigError, {
    subject: file,
    expected: "a readable YAML file",
    remedy: () => (existsSync(file) ? undefined : `check the path: ${describeShellRule()}`),
  });
  const raw = parsed.value ?? {};
  if (!isMapping(raw)) {
    throw new ConfigError("is not a mapping", {
      code: "config/bad-file",
      subject: file,
      expected: "keys and values",
      received: Array.isArray(raw) ? "a list" : typeof raw,
    });
  }
  const typedAlone: Record<string, unknown> = {};
  for (const override of overrides) {
    applyOverride(raw, override);
    applyOverride(typedAlone, override);
  }
  const overridden = structuredClone(typedAlone);
  const findPlace = (key: string) =>
    readKey(overridden, key) === undefined ? findLine(parsed, key) : "from the command line";
  setAsideForeignKeys(typedAlone);
  const { setAside, refusals } = setAsideForeignKeys(raw);
  refuseKeys(refusals, file, findPlace);
  const folder = dirname(resolve(file));
  const typed = resolveRawPaths(raw, typedAlone, folder);
  return {
    values: checkConfig(schema, raw, file, findPlace),
    folder,
    typed,
    file,
    warnings: describeSetAside(setAside),
  };
}

/** Line of a dotted key; undefined if the file does not have it, for example because it uses another name. */
function findLine({ document, lines }: YamlDocument, key: string): string | undefined {
  let node: unknown = document.contents;
  let start: number | undefined;
  for (const part of key.split(".")) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === part);
      if (!pair) return undefined;
      start = (pair.key as Scalar).range?.[0];
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      start = isNode(node) ? node.range?.[0] : start;
    }
    // A single value instead of a list has no entries: the key's line counts.
  }
  return start === undefined ? undefined : `line ${lines.linePos(start).line}`;
}
