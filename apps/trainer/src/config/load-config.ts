import { readFileSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { ConfigError } from "@cria/core";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { findNearest } from "./find-nearest.js";
import { dropIgnoredKeys, isMapping, listIgnoredKeys, removeKey } from "./ignored-keys.js";
import { dropPendingKeys, listPendingKeys } from "./pending-keys.js";

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
  if (!isMapping(raw)) {
    throw new ConfigError("is not a mapping", {
      code: "config/bad-file",
      subject: file,
      expected: "keys and values",
      received: Array.isArray(raw) ? "a list" : typeof raw,
    });
  }
  for (const override of overrides) applyOverride(raw, override);
  renameKeys(raw);
  for (const warning of dropIgnoredKeys(raw)) process.stderr.write(`warning: ${file}: ${warning}\n`);
  dropPendingKeys(raw, file);
  return { values: checkConfig(schema, raw, file), folder: dirname(resolve(file)) };
}

/** Other frameworks' names of keys that mean the same here. */
const renamed: Record<string, [section: string, key: string]> = {
  "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": ["actor_rollout_ref.actor", "ppo_max_token_len"],
  "actor_rollout_ref.actor.optim.warmup_style": ["actor_rollout_ref.actor.optim", "lr_scheduler_type"],
  "critic.optim.warmup_style": ["critic.optim", "lr_scheduler_type"],
};

function renameKeys(raw: Record<string, unknown>): void {
  for (const [path, [section, key]] of Object.entries(renamed)) {
    const { found, value } = removeKey(raw, path);
    if (!found || value === null) continue;
    const node = section.split(".").reduce((at, part) => at[part] as Record<string, unknown>, raw);
    node[key] ??= value;
  }
}

function applyOverride(target: Record<string, unknown>, override: string): void {
  const equals = override.indexOf("=");
  // Hydra's + and ++, for keys that its schema does not have, mean nothing here.
  const path = override
    .slice(0, equals)
    .replace(/^\+{1,2}/, "")
    .split(".");
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
    if (!isMapping(node[part]) || !Object.hasOwn(node, part)) define(node, part, {});
    node = node[part] as Record<string, unknown>;
  }
  try {
    define(node, path.at(-1)!, parseYaml(override.slice(equals + 1)));
  } catch (cause) {
    throw new ConfigError("does not parse", {
      code: "config/bad-override",
      subject: `argument "${override}"`,
      expected: "a YAML value after the =",
      received: (cause as Error).message.split("\n")[0],
      cause,
    });
  }
}

/** Plain assignment would reach Object.prototype through a key named __proto__. */
function define(node: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(node, key, { value, writable: true, enumerable: true, configurable: true });
}

/** @throws ConfigError for the first thing wrong. */
export function checkConfig<T extends z.ZodType>(schema: T, raw: unknown, file: string): z.infer<T> {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0]!;
    const nearest = findNearest(key, [...listKeys(schema, path), ...listForeignKeys(path)]);
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
    expected: describeIssue(issue),
    received: received === undefined ? "nothing" : JSON.stringify(received),
  });
}

/** A union's own message says nothing; its alternatives' do. */
function describeIssue(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_union") return issue.message;
  return issue.errors.map((alternative) => alternative[0]?.message ?? "").join("; or: ");
}

/** Keys at a path that are accepted without being in the schema. */
function listForeignKeys(path: readonly string[]): string[] {
  const prefix = path.map((part) => `${part}.`).join("");
  return [...listIgnoredKeys(), ...listPendingKeys()]
    .filter((key) => key.startsWith(prefix))
    .map((key) => key.slice(prefix.length).split(".")[0]!);
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

/** A path of a config, seen from the config's folder. */
export function resolvePath(folder: string, path: string): string {
  return isAbsolute(path) ? path : resolve(folder, path);
}
