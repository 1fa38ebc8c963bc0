import { readFileSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { ConfigError } from "@cria/core";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { dropIgnoredKeys } from "./ignored-keys.js";

/** A config as read: its values, and the folder that relative paths in it start from. */
export interface LoadedConfig<T> {
  values: T;
  folder: string;
}

/**
 * Reads a YAML file, applies `key.path=value` overrides (values are YAML), and checks it.
 * @throws ConfigError: unreadable file, bad override, unknown key (naming the nearest known one), wrong value.
 */
export function loadConfig<T extends z.ZodType>(
  schema: T,
  file: string,
  overrides: readonly string[] = [],
): LoadedConfig<z.infer<T>> {
  let raw: unknown;
  try {
    raw = parseYaml(readFileSync(file, "utf8")) ?? {};
  } catch (cause) {
    throw new ConfigError("cannot be read", {
      code: "config/unreadable",
      subject: file,
      expected: "a readable YAML file",
      received: (cause as Error).message,
      cause,
    });
  }
  if (typeof raw !== "object" || Array.isArray(raw)) {
    throw new ConfigError("is not a mapping", {
      code: "config/bad-file",
      subject: file,
      expected: "keys and values",
      received: typeof raw,
    });
  }
  for (const override of overrides) applyOverride(raw as Record<string, unknown>, override);
  for (const warning of dropIgnoredKeys(raw as Record<string, unknown>))
    process.stderr.write(`warning: ${file}: ${warning}\n`);
  return { values: checkConfig(schema, raw, file), folder: dirname(resolve(file)) };
}

function applyOverride(target: Record<string, unknown>, override: string): void {
  const equals = override.indexOf("=");
  const path = override.slice(0, equals).split(".");
  if (equals < 1 || path.some((part) => part === "")) {
    throw new ConfigError("is not an override", {
      code: "config/bad-override",
      subject: `argument "${override}"`,
      expected: "key.path=value",
      received: override,
    });
  }
  let node = target;
  for (const part of path.slice(0, -1)) {
    if (typeof node[part] !== "object" || node[part] === null) node[part] = {};
    node = node[part] as Record<string, unknown>;
  }
  node[path.at(-1)!] = parseYaml(override.slice(equals + 1));
}

/** @throws ConfigError for the first thing wrong. */
export function checkConfig<T extends z.ZodType>(schema: T, raw: unknown, file: string): z.infer<T> {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0]!;
    const nearest = findNearest(key, listKeys(schema, path));
    throw new ConfigError("is not a key that Cria knows", {
      code: "config/unknown-key",
      subject: `${file}: ${[...path, key].join(".")}`,
      expected: nearest ? `perhaps "${[...path, nearest].join(".")}"` : undefined,
      received: [...path, key].join("."),
      remedy: "correct or remove it",
    });
  }
  const received = path.reduce<unknown>((node, part) => (node as Record<string, unknown> | undefined)?.[part], raw);
  throw new ConfigError("has a wrong value", {
    code: "config/bad-value",
    subject: `${file}: ${path.join(".")}`,
    expected: issue.message,
    received: received === undefined ? "nothing" : JSON.stringify(received),
  });
}

/** Keys that the schema has at a path. */
function listKeys(schema: z.ZodType, path: readonly string[]): string[] {
  let node: z.ZodType | undefined = schema;
  for (const part of [...path, null]) {
    while (node && !(node instanceof z.ZodObject) && "unwrap" in node && typeof node.unwrap === "function")
      node = node.unwrap() as z.ZodType;
    if (node instanceof z.ZodDefault || node instanceof z.ZodPrefault) node = node.def.innerType as z.ZodType;
    if (!(node instanceof z.ZodObject)) return [];
    if (part === null) return Object.keys(node.shape);
    node = node.shape[part] as z.ZodType | undefined;
  }
  return [];
}

/** The known key with the smallest edit distance, if it is near at all. */
export function findNearest(key: string, known: readonly string[]): string | undefined {
  const scored = known
    .map((name) => ({ name, distance: editDistance(key, name) }))
    .sort((a, b) => a.distance - b.distance);
  return scored[0] && scored[0].distance <= Math.max(2, key.length / 2) ? scored[0].name : undefined;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}

/** A path of a config, seen from the config's folder. */
export function resolvePath(folder: string, path: string): string {
  return isAbsolute(path) ? path : resolve(folder, path);
}
