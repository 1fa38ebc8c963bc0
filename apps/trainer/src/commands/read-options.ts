import { ConfigError, type Device, devices } from "@cria/core";
import { checkArgument, type FetchAddressesOptions, fetchProjector } from "@cria/trainer/internal";

/**
 * A number of the command line.
 * @throws ConfigError with the option's name, for a text that is no number or out of range.
 */
export function readNumber(
  option: string,
  text: string | undefined,
  { whole = false, least, most = Number.POSITIVE_INFINITY }: { whole?: boolean; least: number; most?: number },
): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() !== "" && value >= least && value <= most && (!whole || Number.isSafeInteger(value))) return value;
  throw new ConfigError("has a wrong value", {
    code: "config/bad-argument",
    subject: `--${option}`,
    expected: `a ${whole ? "whole " : ""}number ${most === Number.POSITIVE_INFINITY ? `of at least ${least}` : `from ${least} to ${most}`}`,
    received: text,
  });
}

/** @throws ConfigError for another word. */
export function readDevice(text: string | undefined): Device | undefined {
  return readWord("device", text, devices);
}

/** @throws ConfigError for another word. */
export function readTracing(text: string | undefined): "off" | "otel" {
  return readWord("tracing", text, ["off", "otel"]) ?? "off";
}

function readWord<const W extends string>(
  option: string,
  text: string | undefined,
  words: readonly W[],
): W | undefined {
  const word = words.find((candidate) => candidate === text);
  if (text === undefined || word !== undefined) return word;
  throw new ConfigError("has a wrong value", {
    code: "config/bad-argument",
    subject: `--${option}`,
    expected: `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`,
    received: text,
  });
}

/**
 * The file of `--mmproj`; undefined without it.
 * @throws ConfigError, HubError
 */
export async function readProjector(
  path: string | undefined,
  options: FetchAddressesOptions,
): Promise<string | undefined> {
  return path === undefined ? undefined : fetchProjector(checkArgument("--mmproj", path), options);
}
