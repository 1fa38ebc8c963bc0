import { ConfigError } from "@cria/core";
import { describeIssue, findNearest, findSchema, formatValue, withoutLibraryTexts } from "@cria/core/internal";
import { z } from "zod";
import { listRenamedKeys } from "./verl/foreign-keys.js";

/** Returns the position of a key in its file, for example "line 3"; undefined if it is unknown. */
export type FindPlace = (key: string) => string | undefined;

/** Returns the name of a key in its source. */
export type NameKey = (key: string) => string;

const asItIs: NameKey = (key) => key;

/** @throws ConfigError that names every unknown key, or every wrong value. */
export function checkConfig<T extends z.ZodType>(
  schema: T,
  raw: unknown,
  file: string,
  findPlace: FindPlace = () => undefined,
  nameKey: NameKey = asItIs,
): z.infer<T> {
  const { values, ...found } = inspectConfig(schema, raw);
  const unknown = found.unknown.map(({ key, nearest }) => ({
    key: nameKey(key),
    nearest: nearest && nameKey(nearest),
  }));
  const wrong = found.wrong.map((entry) => ({ ...entry, key: nameKey(entry.key) }));
  if (unknown.length > 0) throw refuseUnknown(unknown, file, findPlace);
  if (wrong.length > 0) throw refuseWrong(wrong, file, findPlace);
  return values as z.infer<T>;
}

/** A key as the subject of an error. */
export function namePlace(key: string, file: string, findPlace: FindPlace): string {
  const place = findPlace(key);
  return `${file}${place ? `, ${place}` : ""}: ${key}`;
}

export interface Inspection<T> {
  /** null if any value is wrong. */
  values: T | null;
  unknown: UnknownKey[];
  wrong: WrongValue[];
}

export interface UnknownKey {
  key: string;
  /** The nearest known key. */
  nearest: string | undefined;
}

export interface WrongValue {
  key: string;
  expected: string;
  received: string;
}

export function inspectConfig<T extends z.ZodType>(schema: T, raw: unknown): Inspection<z.infer<T>> {
  const result = schema.safeParse(raw, withoutLibraryTexts);
  if (result.success) return { values: result.data, unknown: [], wrong: [] };
  const known = [...listLeaves(schema), ...listRenamedKeys()];
  const unknown: UnknownKey[] = [];
  const wrong: WrongValue[] = [];
  for (const issue of result.error.issues) {
    if (issue.code !== "unrecognized_keys") wrong.push(describeWrongValue(schema, issue, raw));
    else
      for (const key of issue.keys) {
        const path = [...issue.path.map(String), key];
        unknown.push({ key: path.join("."), nearest: suggestKey(schema, path, known) });
      }
  }
  return { values: null, unknown, wrong };
}

function refuseWrong(wrong: readonly WrongValue[], file: string, findPlace: FindPlace): ConfigError {
  const [first] = wrong as [WrongValue];
  if (wrong.length === 1)
    return new ConfigError("has a wrong value", {
      code: "config/bad-value",
      subject: namePlace(first.key, file, findPlace),
      expected: first.expected,
      received: first.received,
    });
  return new ConfigError(`has ${wrong.length} wrong values`, {
    code: "config/bad-value",
    subject: file,
    expected: wrong.map(({ key, expected }) => `\n    ${key}: ${expected}`).join(""),
    received: wrong.map(({ key, received }) => `\n    ${key}: ${received}${inBrackets(findPlace(key))}`).join(""),
  });
}

function refuseUnknown(entries: readonly UnknownKey[], file: string, findPlace: FindPlace): ConfigError {
  const [first] = entries as [UnknownKey];
  if (entries.length === 1)
    return new ConfigError("is not a key that Cria knows", {
      code: "config/unknown-key",
      subject: namePlace(first.key, file, findPlace),
      expected: first.nearest ? `perhaps "${first.nearest}"` : undefined,
      received: first.key,
      remedy: "correct or remove it",
    });
  const list = entries.map(
    ({ key, nearest }) => `\n    ${key}${inBrackets(findPlace(key))}${nearest ? `, perhaps "${nearest}"` : ""}`,
  );
  return new ConfigError(`has ${entries.length} keys that Cria does not know`, {
    code: "config/unknown-key",
    subject: file,
    received: list.join(""),
    remedy: "correct or remove them",
  });
}

function inBrackets(place: string | undefined): string {
  return place === undefined ? "" : ` (${place})`;
}

/** Suggests a known key: one with a similar name in the same section, or the same name in another section. */
function suggestKey(schema: z.ZodType, path: readonly string[], known: readonly string[]): string | undefined {
  const section = path.slice(0, -1);
  const name = path.at(-1)!;
  const prefix = section.map((part) => `${part}.`).join("");
  const siblings = new Set(known.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)));
  const names = [...siblings].map((key) => key.split(".")[0]!);
  const nearest = findNearest(name, [...listKeys(schema, section), ...names]);
  if (nearest !== undefined) return `${prefix}${nearest}`;
  return known.find((key) => key.endsWith(`.${name}`));
}

function describeWrongValue(schema: z.ZodType, issue: z.core.$ZodIssue, raw: unknown): WrongValue {
  const path = issue.path.map(String);
  const received = path.reduce<unknown>((node, part) => {
    // For a list, a single value counts as its only entry.
    if (part === "0" && node !== undefined && !Array.isArray(node)) return node;
    return (node as Record<string, unknown> | undefined | null)?.[part];
  }, raw);
  return { key: path.join("."), expected: describeIssue(schema, issue), received: formatValue(received) };
}

/** Keys that the schema has at a path. */
function listKeys(schema: z.ZodType, path: readonly string[]): string[] {
  const node = findSchema(schema, path);
  return node instanceof z.ZodObject ? Object.keys(node.shape) : [];
}

/** Dotted keys of all values. */
export function listLeaves(schema: z.ZodType, path: readonly string[] = []): string[] {
  const keys = listKeys(schema, path);
  if (keys.length === 0) return [path.join(".")];
  return keys.flatMap((key) => listLeaves(schema, [...path, key]));
}
