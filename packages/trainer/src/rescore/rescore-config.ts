import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError, readOrThrow } from "@cria/core";
import { parseYaml } from "@cria/tools/internal";
import { applyOverride } from "../config/apply-override.js";
import { checkConfig } from "../config/check-config.js";
import { resolveAllPaths, resolveTyped } from "../config/paths.js";
import { isMapping } from "../config/raw-config.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import type { SavedRun } from "./read-run.js";

/** Config sections about judging conversations. */
const SECTIONS = ["reward_model", "custom_reward_function"] as const;

/** A reward that replaces the run's. At least one field must be given. */
export interface OtherReward {
  /** Path of a reward function, such as `./reward.ts#score`; replaces `custom_reward_function`. */
  reward?: string;
  /**
   * A YAML file whose sections reward_model and custom_reward_function replace the run's; other sections are
   * ignored.
   */
  config?: string;
  /** `key.path=value` of those two sections. */
  overrides?: readonly string[];
}

/**
 * The run's config with another reward. Parts that are not replaced stay: weights, bonuses, reward models. All paths
 * in the config are absolute.
 * @throws ConfigError if nothing is replaced, or a given value is wrong.
 */
export function makeRescoreConfig(
  { raw, configFolder, path }: Pick<SavedRun, "raw" | "configFolder" | "path">,
  { reward, config, overrides = [] }: OtherReward,
): TrainConfig {
  if (reward === undefined && config === undefined && overrides.length === 0) {
    throw new ConfigError("is missing", {
      code: "config/missing-argument",
      subject: "another reward",
      expected: "--reward ./reward.ts#score, --config with reward_model or custom_reward_function, or their keys",
    });
  }
  const made = structuredClone(raw);
  resolveAllPaths(made, configFolder);
  if (config !== undefined) Object.assign(made, readSections(config));
  const typed: Record<string, unknown> = {};
  for (const override of overrides) {
    applyOverride(made, override);
    applyOverride(typed, override);
  }
  const other = Object.keys(typed).find((key) => !(SECTIONS as readonly string[]).includes(key));
  if (other !== undefined) {
    throw new ConfigError("says nothing of rewards", {
      code: "config/bad-override",
      subject: other,
      expected: `keys of ${SECTIONS.join(" and ")}`,
    });
  }
  // Typed paths are relative to the working directory; absolute ones stay.
  resolveAllPaths(made, process.cwd());
  if (reward !== undefined) made.custom_reward_function = { ...readKwargs(typed), ...splitName(reward) };
  return checkConfig(trainConfigSchema, made, path);
}

function readSections(file: string): Record<string, unknown> {
  const given = readOrThrow(() => parseYaml(readFileSync(file, "utf8")) as unknown, ConfigError, {
    subject: file,
    expected: "a readable YAML file",
  });
  const sections = isMapping(given) ? Object.entries(given).filter(([key]) => SECTIONS.includes(key as never)) : [];
  if (sections.length === 0) {
    throw new ConfigError("says nothing of rewards", {
      code: "config/bad-file",
      subject: file,
      expected: `the sections ${SECTIONS.join(" or ")}`,
    });
  }
  const found = Object.fromEntries(sections);
  resolveAllPaths(found, dirname(resolve(file)));
  return found;
}

/** Typed arguments of the function; those of the run's own function do not apply to another one. */
function readKwargs({ custom_reward_function: typed }: Record<string, unknown>): object {
  return isMapping(typed) && "reward_kwargs" in typed ? { reward_kwargs: typed.reward_kwargs } : {};
}

/** Converts "./reward.ts#score" to the keys of `custom_reward_function`. */
function splitName(reward: string): { path: string; name?: string } {
  const at = reward.lastIndexOf("#");
  if (at < 0) return { path: resolveTyped(reward) };
  return { path: resolveTyped(reward.slice(0, at)), name: reward.slice(at + 1) };
}
