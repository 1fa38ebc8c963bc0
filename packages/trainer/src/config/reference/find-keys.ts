import { ConfigError } from "@cria/core";
import { findNearest } from "@cria/core/internal";
import { findVerlKey, listIgnoredKeys, listOtherNames, listRenamedKeys } from "../verl/foreign-keys.js";
import { describeStreamedKeys } from "../verl/streamed-training.js";
import { describeMovedKeys } from "../verl/translate-values.js";
import { listVerlDefaults } from "../verl/verl-defaults.js";
import { type ConfigFile, configFiles } from "./config-files.js";
import { type ConfigKey, listKeys } from "./list-keys.js";

/** A key, with information for users of other frameworks. */
export interface KeyDetails extends ConfigKey {
  /** True if there is no default. */
  required: boolean;
  /** verl's default, if it differs. */
  verl: { default: unknown; why: string } | null;
  /** Other names of this key. */
  other_names: string[];
}

export interface FoundKeys {
  keys: KeyDetails[];
  /** For a key of another framework: its effect here; else null. */
  note: string | null;
}

/** A kind of config file, by its name. @throws ConfigError */
export function findConfigFile(name: string): ConfigFile {
  const file = configFiles.find((entry) => entry.name === name);
  if (file) return file;
  throw new ConfigError("is not a kind of config", {
    code: "config/bad-argument",
    subject: "--of",
    expected: configFiles.map((entry) => entry.name).join(", "),
    received: name,
  });
}

/**
 * Finds keys by a full name, another framework's name, a section, or the last part of a name.
 * @param query "": all keys.
 * @throws ConfigError with the nearest name, if there is none.
 */
export function findKeys(file: ConfigFile, query: string): FoundKeys {
  const all = listKeys(file.schema);
  const describe = (keys: readonly ConfigKey[]) => keys.map((entry) => describeFully(entry, file));
  const named = query === "" ? all : all.filter(({ key }) => key === query);
  const inside = all.filter(({ key }) => key.startsWith(`${query}.`));
  if (named.length + inside.length > 0) return { keys: describe([...named, ...inside]), note: null };
  const last = all.filter(({ key }) => key.endsWith(`.${query}`));
  if (last.length > 0) return { keys: describe(last), note: null };
  const foreign = file.list === null ? findForeign(all, query) : null;
  if (foreign) return { keys: describe(foreign.keys), note: foreign.note };
  throw refuse(file, all, query);
}

/** Finds a key of another framework, or of a section without effect. */
function findForeign(all: readonly ConfigKey[], query: string): { keys: ConfigKey[]; note: string } | null {
  const parts = query.split(".");
  for (let length = parts.length; length > 0; length--) {
    const key = parts.slice(0, length).join(".");
    const entry = findVerlKey(key);
    if (entry && "alias" in entry) {
      const target = all.filter((own) => own.key === entry.alias);
      if (target.length > 0 && length === parts.length)
        return { keys: target, note: `${key} is another name of ${entry.alias}` };
      continue;
    }
    if (entry && "nothing" in entry) return { keys: [], note: `${key} has no effect: ${entry.nothing}` };
    const streamed = describeStreamedKeys()[key];
    if (streamed !== undefined) return { keys: [], note: `${key} is of a streamed training: ${streamed}` };
    const moved = describeMovedKeys()[key];
    if (moved !== undefined) return { keys: [], note: `${key}: ${moved}` };
    if (!entry) continue;
    const accepted = "only" in entry ? entry.only.map((value) => JSON.stringify(value)).join(" or ") : "";
    return { keys: [], note: `${key} is not supported yet${accepted ? `; it may be ${accepted}` : ""}` };
  }
  return null;
}

function refuse(file: ConfigFile, all: readonly ConfigKey[], query: string): ConfigError {
  const keys = all.map(({ key }) => key);
  const sections = keys.flatMap((key) => key.split(".").map((_, i, parts) => parts.slice(0, i).join(".")));
  const foreign = file.list === null ? [...listRenamedKeys(), ...listIgnoredKeys()] : [];
  const names = keys.map((key) => key.slice(key.lastIndexOf(".") + 1));
  const nearest =
    findNearest(query, [...keys, ...sections.filter(Boolean)]) ??
    findNearest(query, names) ??
    findNearest(query, foreign);
  const other = configFiles.find(({ name, schema }) => {
    return name !== file.name && listKeys(schema).some(({ key }) => key === query || key.endsWith(`.${query}`));
  });
  return new ConfigError("is not a key that Cria knows", {
    code: "config/unknown-argument",
    subject: query,
    expected: nearest ? `perhaps "${nearest}"` : undefined,
    remedy: other ? `cria config ${query} --of ${other.name}` : "cria config lists all keys",
  });
}

function describeFully(entry: ConfigKey, { name, list }: ConfigFile): KeyDetails {
  const verl = name === "train" ? listVerlDefaults().find(({ key }) => key === entry.key) : undefined;
  return {
    ...entry,
    required: !("default" in entry),
    verl: verl ? { default: verl.verl, why: verl.why } : null,
    other_names: list === null ? listOtherNames(entry.key) : [],
  };
}
