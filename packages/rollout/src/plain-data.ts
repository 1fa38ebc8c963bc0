import { describeError } from "./run-with-deadline.js";

/** Maximum nesting depth of copied objects. */
const deepest = 50;

/**
 * Copies untrusted values as immutable JSON data: rewards, tools, interactions and agent loops may return objects
 * with getters, cycles or BigInts. Never throws: unreadable values become texts that say so. Functions and undefined
 * are dropped, as in JSON; NaN and infinities become texts.
 */
export function toPlainData(value: unknown): unknown {
  try {
    return copy(value, []) ?? null;
  } catch (error) {
    return `(cannot be read: ${describeError(error)})`;
  }
}

/** Copies each entry of an object; an unreadable entry does not affect the others. */
export function toPlainRecord(value: unknown): Record<string, unknown> {
  const plain = toPlainData(value);
  return typeof plain === "object" && plain !== null && !Array.isArray(plain) ? (plain as Record<string, unknown>) : {};
}

/** Maximum number of characters of JSON per entry, and per record. */
const longestEntry = 10_000;
const longestRecord = 100_000;

/**
 * Limits the size of the extras of a judge, an agent or a loop for a record: an entry that is too long keeps the
 * beginning of its text; entries beyond the record's limit are only counted, under "(cut)".
 */
export function keepRecord(value: unknown): Record<string, unknown> {
  const entries = Object.entries(toPlainRecord(value));
  const kept: [string, unknown][] = [];
  let length = 0;
  for (const [name, entry] of entries) {
    const short = keepData(entry);
    length += name.length + JSON.stringify(short).length;
    if (length > longestRecord) break;
    kept.push([name, short]);
  }
  if (kept.length < entries.length) kept.push(["(cut)", `${entries.length - kept.length} more`]);
  return Object.fromEntries(kept);
}

/** A value as one line of at most `longest` characters. Never throws. */
export function describeData(value: unknown, longest = 200): string {
  if (value === undefined || typeof value === "function" || typeof value === "symbol") return typeof value;
  if (typeof value === "number") return String(value);
  if (typeof value === "bigint") return `${value}n`;
  const text = JSON.stringify(toPlainData(value));
  return text.length > longest ? `${text.slice(0, longest)} (cut)` : text;
}

/** Limits a value's size for a record: beyond `longest` characters of JSON, only the beginning of its text is kept. */
export function keepData(value: unknown, longest = longestEntry): unknown {
  const plain = toPlainData(value);
  const text = JSON.stringify(plain);
  return text.length > longest ? `${text.slice(0, longest)} (cut)` : plain;
}

/** @param parents the objects that contain the value. */
function copy(value: unknown, parents: readonly object[]): unknown {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
      return String(value);
    case "object":
      return value === null ? null : copyObject(value, parents);
    case "string":
    case "boolean":
      return value;
    default:
      return undefined;
  }
}

function copyObject(value: object, parents: readonly object[]): unknown {
  if (parents.includes(value)) return "(refers to itself)";
  if (parents.length >= deepest) return "(nested too deeply)";
  const inside = [...parents, value];
  const attempt = (read: () => unknown) => {
    try {
      return copy(read(), inside);
    } catch (error) {
      return `(cannot be read: ${describeError(error)})`;
    }
  };
  if (value instanceof Promise) {
    // Mark its rejection as handled: it must not end the process.
    value.catch(() => undefined);
    return "(a promise that was not awaited)";
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return attempt(() => (value as { toJSON(key: string): unknown }).toJSON(""));
  if (value instanceof Map) return copyEntries([...value.entries()].map(([key, entry]) => [String(key), () => entry]));
  if (Array.isArray(value) || value instanceof Set || (ArrayBuffer.isView(value) && !(value instanceof DataView)))
    return Array.from(value as Iterable<unknown>, (entry) => attempt(() => entry) ?? null);
  return copyEntries(Object.keys(value).map((key) => [key, () => (value as Record<string, unknown>)[key]]));

  function copyEntries(entries: (readonly [string, () => unknown])[]): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const [key, read] of entries) {
      const entry = attempt(read);
      // Not an assignment: a key may be called `__proto__`.
      if (entry !== undefined)
        Object.defineProperty(result, key, { value: entry, writable: true, enumerable: true, configurable: true });
    }
    return result;
  }
}
