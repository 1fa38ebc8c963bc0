import { readFileSync } from "node:fs";
import { ConfigError, readOrThrow } from "@cria/core";
import { parse as parseYaml } from "yaml";
import { isMapping } from "../raw-config.js";
import { type Conversion, convertConfig } from "./convert-config.js";
import { readInterpolations } from "./read-interpolations.js";
import { readScript } from "./read-script.js";

/**
 * Converts a shell script that trains with verl, or one of its YAML configs. A script is read, never run.
 * @param args overrides: those that stand for "$@" in a script.
 * @throws ConfigError when the file cannot be read, or has nothing of a training.
 */
export function convertVerlFile(
  file: string,
  args: readonly string[] = [],
  environment: Record<string, string | undefined> = process.env,
): Conversion {
  const expected = "a shell script or a YAML config";
  const text = readOrThrow(() => readFileSync(file, "utf8"), ConfigError, { subject: file, expected });
  const raw = /\.ya?ml$/i.test(file) ? readYaml(text) : null;
  if (!raw) {
    const { overrides, notes } = readScript(text, file, { args, environment });
    return { ...convertConfig({}, overrides), notes };
  }
  if (!isMapping(raw))
    throw new ConfigError("is not a mapping", { code: "config/bad-file", subject: file, expected: "keys and values" });
  const removed = readInterpolations(raw, environment);
  const conversion = convertConfig(
    raw,
    args.map((text) => ({ text, unknown: [] })),
  );
  return { ...conversion, toFillIn: [...removed, ...conversion.toFillIn] };

  function readYaml(source: string): unknown {
    try {
      return parseYaml(source) ?? {};
    } catch (cause) {
      throw new ConfigError("is not YAML", {
        code: "config/unreadable",
        subject: file,
        expected: "a readable YAML file",
        received: (cause as Error).message.split("\n")[0],
        cause,
      });
    }
  }
}
