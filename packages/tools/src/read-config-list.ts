import { readFile } from "node:fs/promises";
import { ConfigError, readOrThrow } from "@cria/core";
import { describeIssue, formatValue, withoutLibraryTexts } from "@cria/core/internal";
import type { z } from "zod";
import { parseYaml } from "./parse-yaml.js";

/**
 * Reads a YAML or JSON file of entries with a `class_name` each: a list, or a mapping with the list under `key`. A
 * Python framework's `_target_` means the same.
 * @throws ConfigError when the file cannot be read, lists nothing, or has an entry that `schema` refuses.
 */
export async function readConfigList<T extends z.ZodObject>(
  file: string,
  key: string,
  schema: T,
): Promise<z.infer<T>[]> {
  const read = async (): Promise<unknown> => parseYaml(await readFile(file, "utf8"));
  const content = await readOrThrow(read, ConfigError, { subject: file, expected: `a YAML file with ${key}` });
  const list = Array.isArray(content) ? content : (content as Record<string, unknown> | null)?.[key];
  if (!Array.isArray(list) || list.some((entry) => typeof entry !== "object" || entry === null)) {
    throw new ConfigError(`does not list ${key}`, {
      code: "config/bad-value",
      subject: file,
      expected: `${key}: [{ ${Object.keys(schema.shape).join(", ")} }]`,
      received: JSON.stringify(content)?.slice(0, 200) ?? "nothing",
    });
  }
  return list.map((entry, i) => readEntry(renameTarget(entry), schema, `${file}: ${key}[${i}]`));
}

function renameTarget({ _target_, ...entry }: Record<string, unknown>): Record<string, unknown> {
  return _target_ === undefined ? entry : { class_name: _target_, ...entry };
}

function readEntry<T extends z.ZodObject>(entry: Record<string, unknown>, schema: T, subject: string): z.infer<T> {
  const result = schema.safeParse(entry, withoutLibraryTexts);
  if (result.success) return result.data;
  const [issue] = result.error.issues as [z.core.$ZodIssue];
  const at = [subject, ...issue.path.map(String)].join(".");
  if (issue.code === "unrecognized_keys") {
    throw new ConfigError("is not a known key", {
      code: "config/unknown-key",
      subject: `${at}.${issue.keys[0]}`,
      expected: issue.path.length === 0 ? Object.keys(schema.shape).join(", ") : undefined,
      received: issue.keys.join(", "),
      remedy: "correct or remove it; arguments of the class go into its config",
    });
  }
  const value = issue.path.reduce<unknown>((node, part) => (node as Record<PropertyKey, unknown>)?.[part], entry);
  throw new ConfigError("has a wrong value", {
    code: "config/bad-value",
    subject: at,
    expected: describeIssue(schema, issue),
    received: formatValue(value),
  });
}
