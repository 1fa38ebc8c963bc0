import { describeSchema, findSchema } from "@cria/core/internal";
import { z } from "zod";

/** A config key, as described by its schema. */
export interface ConfigKey {
  /** Dotted name. */
  key: string;
  /** Description of valid values. */
  type: string;
  /** undefined: the key is required. */
  default?: unknown;
  meaning: string;
  /** Registered names that it accepts, beside paths of your own modules. */
  names?: readonly string[];
}

/**
 * All keys of a config, in schema order. Keys of a list's entries follow the list, as `<list>.<key>`, and those of a mapping of any names
 * follow it as `<mapping>.<name>.<key>`, where `<name>` stands as it is.
 */
export function listKeys(schema: z.ZodObject, prefix = ""): ConfigKey[] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    const key = `${prefix}${name}`;
    const value = findSchema(field as z.ZodType, [])!;
    if (value instanceof z.ZodObject && isStrict(value)) return listKeys(value, `${key}.`);
    return [describeKey(key, field as z.ZodType), ...listEntryKeys(value, key)];
  });
}

/** The keys of what a list or a mapping of any names holds. */
function listEntryKeys(value: z.ZodType, key: string): ConfigKey[] {
  const isMapping = value instanceof z.ZodRecord;
  if (!isMapping && !(value instanceof z.ZodArray)) return [];
  const entry = findSchema((isMapping ? value.valueType : value.element) as z.ZodType, [])!;
  return entry instanceof z.ZodObject && isStrict(entry)
    ? listKeys(entry, isMapping ? `${key}.<name>.` : `${key}.`)
    : [];
}

/** True if the schema accepts no further keys. */
function isStrict(schema: z.ZodObject): boolean {
  return schema.def.catchall instanceof z.ZodNever;
}

function describeKey(key: string, field: z.ZodType): ConfigKey {
  const { description = "", examples } = z.globalRegistry.get(field) ?? {};
  const absent = field.safeParse(undefined);
  const described: ConfigKey = { key, type: describeSchema(field), meaning: description };
  if (absent.success) described.default = absent.data ?? null;
  if (Array.isArray(examples)) described.names = examples as string[];
  return described;
}

/** Groups keys by section, in the order of each section's first key. */
export function groupBySection<T extends ConfigKey>(keys: readonly T[]): Map<string, T[]> {
  const sections = new Map<string, T[]>();
  for (const entry of keys) {
    const section = entry.key.slice(0, Math.max(0, entry.key.lastIndexOf(".")));
    sections.set(section, [...(sections.get(section) ?? []), entry]);
  }
  return sections;
}
