import { ConfigError } from "./errors/config-error.js";
import { findNearest } from "./find-nearest.js";
import { formatValue } from "./format-value.js";

/**
 * A test of a value, and a description of valid values; `within`: checks of the options that this option contains, which
 * come first.
 */
export type OptionCheck = readonly [isRight: (value: unknown) => boolean, expected: string, within?: OptionChecks];
type OptionChecks = Readonly<Record<string, OptionCheck>>;

/** One check for every option, so that none can be forgotten. */
export type ChecksOf<Options> = Readonly<Record<keyof Options, OptionCheck>>;

export const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
export const isFunction = (value: unknown): boolean => typeof value === "function";
export const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Checks shared by many options. */
export const optionChecks = {
  /** The function that receives the option checks it. */
  any: [() => true, "any value"],
  text: [isText, "a text"],
  flag: [(value) => typeof value === "boolean", "true or false"],
  number: [(value) => typeof value === "number" && !Number.isNaN(value), "a number"],
  count: [(value) => Number.isInteger(value) && Number(value) > 0, "a whole number of at least 1"],
  whole: [Number.isInteger, "a whole number"],
  function: [isFunction, "a function"],
  signal: [(value) => value instanceof AbortSignal, "an AbortSignal"],
  object: [isObject, "an object"],
} satisfies Record<string, OptionCheck>;

/**
 * Checks options against their types at run time, for callers in JavaScript and for options that were spread. Undefined
 * counts as left out.
 * @param call name of the called function, for the error.
 * @throws ConfigError "config/unknown-key" or "config/bad-value" that names the option.
 */
export function checkOptions<Options extends object>(
  call: string,
  options: Options,
  checks: ChecksOf<Required<Options>>,
): void {
  if (!isObject(options)) throw refuseOption(call, "has no options", "{ ... }", options);
  checkWithin(call, options, checks as OptionChecks, "");
}

function checkWithin(call: string, options: object, checks: OptionChecks, prefix: string): void {
  for (const [key, value] of Object.entries(options)) {
    const subject = `${call}: ${prefix}${key}`;
    if (!Object.hasOwn(checks, key)) {
      const nearest = findNearest(key, Object.keys(checks));
      throw new ConfigError("is not an option", {
        code: "config/unknown-key",
        subject,
        expected: nearest === undefined ? Object.keys(checks).join(", ") : `perhaps "${prefix}${nearest}"`,
        received: key,
        remedy: "correct or remove it",
      });
    }
    if (value === undefined) continue;
    const [isRight, expected, within] = checks[key]!;
    // First what it contains: a misspelt name in it says more than that another is missing.
    if (within && isObject(value)) checkWithin(call, value, within, `${prefix}${key}.`);
    if (!isRight(value)) throw refuseOption(subject, "has a wrong value", expected, value);
  }
}

export function refuseOption(subject: string, summary: string, expected: string, received: unknown): ConfigError {
  return new ConfigError(summary, { code: "config/bad-value", subject, expected, received: previewValue(received) });
}

/** A value as one line of text, even if JSON cannot represent it. */
export function previewValue(value: unknown): string {
  if (typeof value === "function") return `a function${value.name === "" ? "" : ` (${value.name})`}`;
  if (value instanceof Promise) return "a promise";
  try {
    const text = formatValue(value) ?? typeof value;
    return text.length > 200 ? `${text.slice(0, 200)}...` : text;
  } catch {
    return `a value of type ${typeof value}`;
  }
}
