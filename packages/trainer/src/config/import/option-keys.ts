import { z } from "zod";
import { readKey, writeKey } from "../raw-config.js";

/** The keys of a config that are options under another name. */
export interface OptionKeys {
  /** The key of an option, by its schema; undefined: it has another form in configs, which an importer of its own reads. */
  find(option: z.core.$ZodType): string | undefined;
  /** Reads the options that have a key from a checked config. @param within a section, where several have such keys. */
  read<Shape extends z.ZodRawShape>(
    config: object,
    options: z.ZodObject<Shape>,
    within?: string,
  ): z.infer<z.ZodObject<Shape>>;
  /** Writes options that are given into a raw config; options of options too. */
  write(raw: Record<string, unknown>, options: z.ZodObject, given: object): void;
}

/**
 * Finds the options in the schema of a config. Where a key's schema is that of an option, it is that option: with its meaning, its
 * default and its range. Sections of the config are thus the table of keys and options.
 */
export function findOptionKeys(schema: z.ZodObject): OptionKeys {
  const fields = listFields(schema, "");
  const find = (option: z.core.$ZodType, within = "") =>
    fields.find(([key, field]) => field === option && key.startsWith(within))?.[0];
  const write: OptionKeys["write"] = (raw, options, given) => {
    for (const [name, value] of Object.entries(given)) {
      const option = options.shape[name]!;
      const key = find(option);
      const inner = unwrap(option);
      if (value === undefined) continue;
      if (key !== undefined) writeKey(raw, key, value);
      else if (inner instanceof z.ZodObject) write(raw, inner, value as object);
    }
  };
  return {
    find,
    read: (config, { shape }, within) =>
      Object.fromEntries(
        Object.entries(shape).flatMap(([name, option]) => {
          const key = find(option, within);
          return key === undefined ? [] : [[name, readKey(config, key)]];
        }),
      ) as never,
    write,
  };
}

/** Fields of a schema and of its sections, with dotted keys. */
function listFields(schema: z.ZodObject, prefix: string): [key: string, field: z.core.$ZodType][] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    const inner = unwrap(field);
    return inner instanceof z.ZodObject ? listFields(inner, `${prefix}${name}.`) : [[`${prefix}${name}`, field]];
  });
}

/** A section without what gives it defaults. */
function unwrap(field: z.core.$ZodType): z.core.$ZodType {
  return field instanceof z.ZodPrefault ? unwrap(field.def.innerType) : field;
}
