import { dirname, join } from "node:path";
import type { Training } from "cria";
import { type OpenOptions, openConfig } from "./open-config.js";

const config = join(import.meta.dirname, "..", "examples", "calculator", "config.yaml");

/** Paths in the calculator's config are relative to this folder. */
export const calculatorFolder = dirname(config);

/**
 * Opens a training of the demo's calculator.
 * @param overrides "key.path=value".
 */
export const openCalculator = (options: OpenOptions, overrides: readonly string[]): Promise<Training> =>
  openConfig(config, options, overrides);
