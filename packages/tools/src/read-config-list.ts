import { readFile } from "node:fs/promises";
import { ConfigError } from "@cria/core";

/**
 * Reads a YAML or JSON file of entries with a `class_name` each: a list, or a mapping with the list under `key`. A Python
 * framework's `_target_` means the same.
 * @throws ConfigError when it cannot be read or lists nothing.
 */
export async function readConfigList<Entry extends { class_name: string }>(
  file: string,
  key: string,
): Promise<Entry[]> {
  let content: unknown;
  try {
    const { parse } = await import("yaml");
    content = parse(await readFile(file, "utf8"));
  } catch (cause) {
    throw new ConfigError("cannot be read", {
      code: "config/unreadable",
      subject: file,
      expected: `a YAML file with ${key}`,
      received: (cause as Error).message,
      cause,
    });
  }
  const list = Array.isArray(content) ? content : (content as Record<string, unknown> | null)?.[key];
  const entries = Array.isArray(list)
    ? list.map((entry) => (entry?._target_ === undefined ? entry : { class_name: entry._target_, ...entry }))
    : null;
  if (entries?.every((entry) => typeof entry?.class_name === "string")) return entries as Entry[];
  throw new ConfigError(`does not list ${key}`, {
    code: "config/bad-value",
    subject: file,
    expected: `${key}: [{ class_name, name?, config? }]`,
    received: JSON.stringify(content)?.slice(0, 200) ?? "nothing",
  });
}
