/** A key with different values in two configs; `undefined` if a config lacks it. */
export interface ConfigDifference {
  key: string;
  before: unknown;
  after: unknown;
}

/** Differing keys, dotted, in the order of the second config. Lists are compared whole. */
export function compareConfigs(before: unknown, after: unknown, prefix = ""): ConfigDifference[] {
  if (!isMapping(before) || !isMapping(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ key: prefix, before, after }];
  const keys = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...keys].flatMap((key) => compareConfigs(before[key], after[key], prefix ? `${prefix}.${key}` : key));
}

export function formatDifferences(differences: readonly ConfigDifference[]): string {
  const show = (value: unknown) => (value === undefined ? "not set" : JSON.stringify(value));
  return differences.map(({ key, before, after }) => `  ${key}: ${show(before)} -> ${show(after)}`).join("\n");
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
