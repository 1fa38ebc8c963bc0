import { describeIssue, formatValue, withoutLibraryTexts } from "@cria/core/internal";
import type { z } from "zod";
import { refuseField } from "../request-error.js";

/** Longest text of a wrong value that an error repeats. */
const MOST_SHOWN = 120;

/**
 * The fields of a request's body that the schema knows; others are ignored.
 * @throws RequestError 400 with the first wrong field, its expected and received value.
 */
export function readFields<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const result = schema.safeParse(body, withoutLibraryTexts);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const path = issue.path.map(String);
  throw refuseField(
    path.length === 0 ? "body" : path.join("."),
    describeIssue(schema, issue),
    showValue(path.reduce<unknown>(getOwn, body)),
  );
}

/** A value for an error, shortened if long. */
export function showValue(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) {
    const keys = Object.keys(value);
    return keys.length === 0 ? "an empty mapping" : `a mapping with ${cut(keys.slice(0, 8).join(", "))}`;
  }
  return typeof value === "string" ? cut(formatValue(value.slice(0, MOST_SHOWN))) : formatValue(value);
}

const cut = (text: string) => (text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}...` : text);

/** A value's own property; undefined where there is none. */
export function getOwn(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
}
