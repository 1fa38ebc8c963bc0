import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { ConfigError, readOrThrow } from "@cria/core";
import type { SetAside } from "../raw-config.js";
import { type Conversion, convertConfig } from "./convert-config.js";
import type { Field } from "./expand-word.js";
import { findBaseConfig } from "./find-base-config.js";
import { readInterpolations } from "./read-interpolations.js";
import { readScript } from "./read-script.js";
import { mergeConfig, readYamlConfig } from "./read-yaml-config.js";

const isYaml = (file: string) => /\.ya?ml$/i.test(file);

/**
 * Converts a shell script that trains with verl, one of its YAML configs, or a script with its configs. Later
 * configs override earlier ones, and the script's overrides override all of them. The script is only read, never
 * run.
 * @param args overrides that replace "$@" in the script.
 * @throws ConfigError when a file cannot be read, or has nothing to do with training.
 */
export function convertVerlFiles(
  files: readonly string[],
  args: readonly string[] = [],
  env: Record<string, string | undefined> = process.env,
): Conversion {
  const scripts = files.filter((file) => !isYaml(file));
  const configs = files.filter(isYaml);
  if (scripts.length > 1)
    throw new ConfigError("are more than one training", {
      code: "config/not-supported",
      subject: scripts.join(", "),
      expected: "one script, and the YAML configs that it starts from",
      received: `${scripts.length} scripts`,
    });
  const [script] = scripts;
  const raw: Record<string, unknown> = {};
  const missing: SetAside[] = [];
  const notes: string[] = [];
  let overrides: readonly Field[] = args.map((text) => ({ text, unknown: [] }));
  if (script !== undefined) {
    const expected = "a shell script or a YAML config";
    const text = readOrThrow(() => readFileSync(script, "utf8"), ConfigError, { subject: script, expected });
    const reading = readScript(text, script, { args, env });
    const base = findBaseConfig(reading, script, configs);
    mergeConfig(raw, base.raw);
    missing.push(...base.missing);
    overrides = reading.overrides;
    const files = base.files.map((file) => `${basename(file)}: read for --config-name`);
    notes.push(...base.notes, ...files, ...reading.notes);
  }
  for (const file of configs) {
    const config = readYamlConfig(file);
    mergeConfig(raw, config.raw);
    missing.push(...config.missing.filter(({ key }) => !configs.some((each) => key.endsWith(` ${stem(each)}`))));
  }
  const removed = readInterpolations(raw, env);
  const conversion = convertConfig(raw, overrides, missing);
  return { ...conversion, toFillIn: [...removed, ...conversion.toFillIn], notes };
}

const stem = (file: string) => basename(file).replace(/\.ya?ml$/i, "");
