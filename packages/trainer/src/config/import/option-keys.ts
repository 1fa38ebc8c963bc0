import { z } from "zod";
import { readKey, writeKey } from "../raw-config.js";

/** Maps options to the config keys that set them. */
export interface OptionKeys {
  /**
   * Key of an option, given its schema; undefined: configs have it in another form, which a separate importer reads.
   */
  find(option: z.core.$ZodType): string | undefined;
  /** Reads all options that have keys from a checked config. */
  read<Shape extends z.ZodRawShape>(config: object, options: z.ZodObject<Shape>): z.infer<z.ZodObject<Shape>>;
  /** Writes the given options, nested ones included, into a raw config. */
  write(raw: Record<string, unknown>, options: z.ZodObject, given: object): void;
}

/**
 * Finds the options in a config's schema. A key whose schema object is that of an option stands for this option,
 * with the same meaning, default and range. The sections of the config thus form the table of keys and options.
 */
export function findOptionKeys(schema: z.ZodObject): OptionKeys {
  const fields = listFields(schema, "");
  const find = (option: z.core.$ZodType) => fields.find(([, field]) => field === option)?.[0];
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
    read: (config, { shape }) =>
      Object.fromEntries(
        Object.entries(shape).flatMap(([name, option]) => {
          const key = find(option);
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

/** A section without its wrapper for defaults. */
function unwrap(field: z.core.$ZodType): z.core.$ZodType {
  return field instanceof z.ZodPrefault ? unwrap(field.def.innerType) : field;
}
