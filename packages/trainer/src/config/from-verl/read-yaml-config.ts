import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ConfigError, readOrThrow } from "@cria/core";
import { parseYaml } from "@cria/tools/internal";
import { isMapping, type SetAside } from "../raw-config.js";

type Raw = Record<string, unknown>;

/** Names of verl's own primary configs, which contain its known defaults. */
const OWN = /^ppo(_megatron|_veomni|_torchtitan)?_trainer$/;

/** A YAML config composed with those in its `defaults`. */
export interface YamlConfig {
  raw: Raw;
  /** Referenced files that do not exist. */
  missing: SetAside[];
  /** Files that were read, including itself, in order of precedence. */
  files: string[];
}

/**
 * Reads a config as Hydra composes it: first the files of its `defaults`, in order; its own keys at `_self_`, or
 * last. Files are searched in the config's folder.
 * @throws ConfigError when it cannot be read.
 */
export function readYamlConfig(file: string, open: readonly string[] = []): YamlConfig {
  const own = readMapping(file);
  const { defaults, ...keys } = own;
  const composed: YamlConfig = { raw: {}, missing: [], files: [] };
  const entries: unknown[] = Array.isArray(defaults) ? defaults : [];
  const addSelf = () => {
    mergeConfig(composed.raw, keys);
    composed.files.push(file);
  };
  for (const entry of entries) {
    if (entry === "_self_") addSelf();
    else addDefault(composed, entry, file, [...open, file]);
  }
  if (!entries.includes("_self_")) addSelf();
  return composed;
}

/**
 * Adds one entry of `defaults`: "name", "group/name", or { group: name }, with an optional "@section" after the
 * group.
 */
function addDefault(composed: YamlConfig, entry: unknown, file: string, open: readonly string[]): void {
  const [key, value] = isMapping(entry) ? (Object.entries(entry)[0] ?? []) : [undefined, entry];
  if (typeof value !== "string" || OWN.test(value)) return;
  const [, group = "", section] = /^(?:optional |override )*([^@]*)(?:@(.*))?$/.exec(key ?? "") ?? [];
  const name = value.replace(/\.ya?ml$/, "");
  const found = findYaml(join(dirname(file), group), name);
  if (found === null || open.includes(found)) {
    // Groups are parts of verl's own config, whose values are its defaults.
    if (key === undefined) composed.missing.push(tellMissing(`defaults: ${value}`));
    return;
  }
  const { raw, missing, files } = readYamlConfig(found, open);
  const at =
    section === undefined ? group.split("/").filter(Boolean) : section === "_global_" ? [] : section.split(".");
  mergeConfig(
    composed.raw,
    at.reduceRight<Raw>((inner, part) => ({ [part]: inner }), raw),
  );
  composed.missing.push(...missing);
  composed.files.push(...files);
}

/** Finds a YAML file of that name in a folder; null if there is none. */
export function findYaml(folder: string, name: string): string | null {
  const stem = name.replace(/\.ya?ml$/, "");
  return [`${stem}.yaml`, `${stem}.yml`].map((each) => join(folder, each)).find(existsSync) ?? null;
}

/** True for the name of a config with verl's own defaults. */
export function isVerlsOwn(name: string): boolean {
  return OWN.test(name.replace(/\.ya?ml$/, ""));
}

export function tellMissing(key: string): SetAside {
  return { key, reason: "the keys of that file are not read: give it to --from-verl too" };
}

/** Merges keys into a config: sections are merged, lists replaced. */
export function mergeConfig(target: Raw, keys: Raw): void {
  for (const [key, value] of Object.entries(keys)) {
    const before = Object.hasOwn(target, key) ? target[key] : undefined;
    if (isMapping(before) && isMapping(value)) mergeConfig(before, value);
    else Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  }
}

function readMapping(file: string): Raw {
  const expected = "a shell script or a YAML config";
  const text = readOrThrow(() => readFileSync(file, "utf8"), ConfigError, { subject: file, expected });
  let raw: unknown;
  try {
    raw = parseYaml(text) ?? {};
  } catch (cause) {
    throw new ConfigError("is not YAML", {
      code: "config/unreadable",
      subject: file,
      expected: "a readable YAML file",
      received: (cause as Error).message.split("\n")[0],
      cause,
    });
  }
  if (isMapping(raw)) return raw;
  throw new ConfigError("is not a mapping", { code: "config/bad-file", subject: file, expected: "keys and values" });
}
