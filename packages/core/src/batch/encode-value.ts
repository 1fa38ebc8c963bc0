import { DataError } from "../errors/data-error.js";
import { type Dtype, dtypes, findDtype } from "./typed-array.js";

/**
 * Values as JSON that comes back as it was. What JSON cannot say is written as `{ "$": kind, v: ... }`; objects that have
 * a key "$" themselves are wrapped likewise.
 */
export function encodeValue(value: unknown, place: string): unknown {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (value === undefined) return { $: "undefined" };
  if (typeof value === "number") {
    return Number.isFinite(value) && !Object.is(value, -0)
      ? value
      : { $: "number", v: Object.is(value, -0) ? "-0" : String(value) };
  }
  if (typeof value === "bigint") return { $: "bigint", v: String(value) };
  if (Array.isArray(value)) return Array.from(value, (entry, i) => encodeValue(entry, `${place}[${i}]`));
  // JSON has no NaN: a date that is none is written as a text that is none.
  if (value instanceof Date) return { $: "date", v: Number.isNaN(value.getTime()) ? "invalid" : value.getTime() };
  const dtype = findDtype(value);
  if (dtype) {
    const { buffer, byteOffset, byteLength } = value as Uint8Array;
    return { $: dtype, v: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
  }
  const prototype: unknown = typeof value === "object" ? Object.getPrototypeOf(value) : undefined;
  if (prototype === Object.prototype || prototype === null) {
    const entries = Object.entries(value as object).map(([k, v]) => [k, encodeValue(v, `${place}.${k}`)]);
    const encoded = Object.fromEntries(entries) as Record<string, unknown>;
    return Object.hasOwn(encoded, "$") ? { $: "object", v: encoded } : encoded;
  }
  throw new DataError("cannot be written", {
    code: "data/not-serializable",
    subject: place,
    expected: "null, booleans, numbers, strings, bigints, dates, typed arrays, and arrays and plain objects of them",
    received: typeof value === "object" ? `an instance of ${value.constructor.name}` : typeof value,
    remedy: "take the column out with pop before",
  });
}

export function decodeValue(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(decodeValue);
  const tagged = value as { $?: unknown; v?: unknown };
  if (!Object.hasOwn(value, "$")) return decodeObject(value);
  if (tagged.$ === "undefined") return undefined;
  if (tagged.$ === "number") return Number(tagged.v);
  if (tagged.$ === "bigint") return BigInt(tagged.v as string);
  if (tagged.$ === "date") return new Date(tagged.v as number | "invalid");
  if (tagged.$ === "object") return decodeObject(tagged.v as object);
  const bytes = Buffer.from(tagged.v as string, "base64");
  // Copied, for a Buffer may begin at any byte.
  return new dtypes[tagged.$ as Dtype](Uint8Array.from(bytes).buffer);
}

function decodeObject(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, decodeValue(entry)]));
}
