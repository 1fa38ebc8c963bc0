import { ConfigError } from "@cria/core";
import { describeIssue, formatValue, withoutLibraryTexts } from "@cria/core/internal";
import type { z } from "zod";

/**
 * Checks an interaction's config.
 * @throws ConfigError with the key, its expected value and the received one.
 */
export function readConfig<T extends z.ZodType>(schema: T, config: Record<string, unknown>, owner: string): z.infer<T> {
  const result = schema.safeParse(config, withoutLibraryTexts);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const value = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
    config,
  );
  throw new ConfigError("has a wrong value", {
    code: "config/bad-value",
    subject: [`config of ${owner}`, ...issue.path.map(String)].join("."),
    expected: describeIssue(schema, issue),
    received: formatValue(value),
  });
}
