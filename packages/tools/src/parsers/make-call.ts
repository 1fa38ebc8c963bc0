import type { ParsedToolCall } from "./tool-parser.js";

/** A call that cannot be run; the text goes back to the model. */
export function makeMalformedCall(reason: string, name = ""): ParsedToolCall {
  return { name, arguments: {}, error: `error: invalid call (${reason})` };
}

/** Calls of one stretch of text; those that cannot be run keep the model's text. */
export function keepText(calls: readonly ParsedToolCall[], text: string): ParsedToolCall[] {
  return calls.map((call) => (call.error === undefined ? call : { ...call, text }));
}

/** Reads one JSON text as a call. `shape` is the form that the model should have written, for the error text. */
export function readJsonCall(json: string, shape: string): ParsedToolCall {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return makeMalformedCall(`not valid JSON: ${(error as Error).message}; expected ${shape}`);
  }
  return makeCall(value, shape);
}

/**
 * A call from its parsed JSON: `{ name, arguments }`, `{ name, parameters }`, or either inside `function`. Arguments
 * may be JSON text, as the OpenAI API writes them; without the key there are none.
 */
export function makeCall(value: unknown, shape: string): ParsedToolCall {
  const call = isRecord(value) && isRecord(value.function) ? value.function : value;
  if (!isRecord(call)) return makeMalformedCall(`not an object; expected ${shape}`);
  const name = call.name ?? call.function;
  if (typeof name !== "string" || name === "") return makeMalformedCall(`no name; expected ${shape}`);
  const given = call.arguments ?? call.parameters ?? {};
  const args = typeof given === "string" ? tryParse(given) : given;
  if (!isRecord(args)) return makeMalformedCall("arguments are not an object", name);
  const id = isRecord(value) ? value.id : undefined;
  return { name, arguments: args, ...(typeof id === "string" && id !== "" ? { id } : {}) };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
