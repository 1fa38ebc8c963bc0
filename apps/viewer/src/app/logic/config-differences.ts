/** Keys of nested configs with a dot between their names, each with its values as JSON. */
export function flatten(value: unknown, prefix = "", into = new Map<string, string>()): Map<string, string> {
  if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0)
    for (const [key, entry] of Object.entries(value)) flatten(entry, prefix ? `${prefix}.${key}` : key, into);
  else if (prefix) into.set(prefix, JSON.stringify(value) ?? "null");
  return into;
}

export interface ConfigDifference {
  key: string;
  /** Of each config; null where it lacks the key. */
  values: (string | null)[];
}

/** The keys in which configs differ. */
export function findDifferences(configs: readonly (Record<string, unknown> | null)[]): ConfigDifference[] {
  const flat = configs.map((config) => flatten(config ?? {}));
  const keys = [...new Set(flat.flatMap((entries) => [...entries.keys()]))].sort();
  return keys
    .map((key) => ({ key, values: flat.map((entries) => entries.get(key) ?? null) }))
    .filter(({ values }) => new Set(values).size > 1);
}
