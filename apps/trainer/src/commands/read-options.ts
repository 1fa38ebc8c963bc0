import { ConfigError } from "@cria/core";
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
export function readDevice(text: string | undefined): "auto" | "cpu" | "cuda" | undefined {
  if (text === undefined || text === "auto" || text === "cpu" || text === "cuda") return text;
  throw new ConfigError("has a wrong value", {
    code: "config/bad-argument",
    subject: "--device",
    expected: "auto, cpu or cuda",
    received: text,
  });
}

/** @throws ConfigError for anything that is neither off nor otel. */
export function readTracing(text: string | undefined): "off" | "otel" {
  if (text === undefined || text === "off" || text === "otel") return text ?? "off";
  throw new ConfigError("has a wrong value", {
    code: "config/bad-argument",
    subject: "--tracing",
    expected: "off or otel",
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
