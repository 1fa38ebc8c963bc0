import { ToolError } from "@cria/core";

/**
 * The return value of a tool's function as a text for the model: a text unchanged, else its JSON.
 * @throws ToolError with the value's kind where JSON has nothing for it (functions, BigInts, cycles), or would write
 * `{}` for a value with content: maps, sets, promises, errors, streams and generators, at any depth.
 */
export function writeOutput(output: unknown, tool: string): string {
  if (typeof output === "string") return output;
  // Numbers unchanged: JSON would write null for those that are not finite.
  if (typeof output === "number") return String(output);
  const places = new Map<unknown, string>();
  let text: string | undefined;
  try {
    text = JSON.stringify(output, function (this: unknown, key: string, value: unknown) {
      const place = key === "" ? "" : joinPlace(places.get(this) ?? "", key);
      const what = nameUnsayable(value);
      if (what !== null) throw refuse(tool, place === "" ? what : `${what} at ${place}`);
      if (typeof value === "object" && value !== null) places.set(value, place);
      return value;
    });
  } catch (cause) {
    if (cause instanceof ToolError) throw cause;
    throw refuse(tool, (cause as Error).message, cause);
  }
  if (text !== undefined) return text;
  throw refuse(tool, typeof output === "function" ? "a function" : typeof output);
}

const joinPlace = (place: string, key: string) => (place === "" ? key : `${place}.${key}`);

/**
 * The kind of a value for which JSON would write `{}` or internals; null for other values and for those with a
 * `toJSON`.
 */
function nameUnsayable(value: unknown): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return null;
  const isIterable = Symbol.asyncIterator in value || Symbol.iterator in value;
  if (!isIterable && !(value instanceof Error) && Object.keys(value).length > 0) return null;
  if (value instanceof Error) return `an error ("${value.message}")`;
  const tag = (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  const name = typeof tag === "string" ? tag : (value as object).constructor?.name;
  return `${/^[aeiou]/i.test(name ?? "") ? "an" : "a"} ${name || "nameless object"}`;
}

function refuse(tool: string, received: string, cause?: unknown): ToolError {
  return new ToolError("returned a value that JSON cannot express", {
    code: "tool/bad-answer",
    subject: `execute of tool "${tool}"`,
    expected: "a text, { text, image, reward, metrics }, or a value that JSON can express",
    received,
    remedy: "await it, or return a text, an array or an object made of it",
    ...(cause === undefined ? {} : { cause }),
  });
}
