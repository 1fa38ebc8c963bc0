/** Keys of nested configs with a dot between their names, each with its values as JSON. */
export function flatten(value: unknown, prefix = "", into = new Map<string, string>()): Map<string, string> {
  if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0)
    for (const [key, entry] of Object.entries(value)) flatten(entry, prefix ? `${prefix}.${key}` : key, into);
  else if (prefix) into.set(prefix, JSON.stringify(value) ?? "null");
  return into;
}

export interface ConfigDifference {
  key: string;
  /** Value in each config, "12 keys" for a section; null when it lacks the key. */
  values: (string | null)[];
}

/** The keys in which configs differ; a section that one of them lacks, or has as another type, counts as one key. */
export function findDifferences(configs: readonly (Record<string, unknown> | null)[]): ConfigDifference[] {
  return compare(
    configs.map((config) => config ?? {}),
    "",
  ).sort((a, b) => (a.key < b.key ? -1 : 1));
}

function compare(values: readonly unknown[], key: string): ConfigDifference[] {
  if (values.every(isSection)) {
    const names = [...new Set(values.flatMap((value) => Object.keys(value)))];
    return names.flatMap((name) =>
      compare(
        values.map((value) => value[name]),
        key ? `${key}.${name}` : name,
      ),
    );
  }
  const texts = values.map(describe);
  return new Set(texts).size > 1 ? [{ key, values: texts }] : [];
}

/** A value as JSON; a section in a few words. */
function describe(value: unknown): string | null {
  if (value === undefined) return null;
  if (!isSection(value)) return JSON.stringify(value) ?? "null";
  const count = flatten(value).size;
  return count === 1 ? "1 key" : `${count} keys`;
}

function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
