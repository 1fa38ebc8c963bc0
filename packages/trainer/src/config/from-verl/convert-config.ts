import type { CriaError } from "@cria/core";
import { applyOverride, OVERRIDE } from "../apply-override.js";
import { inspectConfig } from "../check-config.js";
import { isMapping, listLeaves, readKey, removeKey, type SetAside, writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import { setAsideForeignKeys } from "../verl/set-aside-keys.js";
import { isStreamed, listStreamedFactors } from "../verl/streamed-training.js";
import { listVerlDefaults } from "../verl/verl-defaults.js";
import type { Field } from "./expand-word.js";

/** A config of verl converted to Cria's, with lists of everything that was not converted. */
export interface Conversion {
  /** Config under Cria's names; always parses. */
  config: Record<string, unknown>;
  /** Keys whose value is unknown, or must be replaced by another one. */
  toFillIn: SetAside[];
  /** Keys for features that Cria lacks: training differs without them. */
  unsupported: SetAside[];
  /** Keys that need no effect here. */
  setAside: SetAside[];
  /** Keys that were missing and got verl's default, because it differs from Cria's. */
  verlDefaults: string[];
  notes: string[];
}

const BATCH_SIZE = "data.train_batch_size";
const MULTI_TURN = "actor_rollout_ref.rollout.multi_turn";
/** Keys that imply several turns. The format of tool calls is not among them: it is often set without any tools. */
const MEANS_TURNS = /\.multi_turn\.(tool_config_path|interaction_config_path|function_tool_path|max_\w*turns)$/;
/** verl's default of ppo_mini_batch_size. */
const VERL_MINI_BATCH = 256;

/** Required keys, with placeholders for the reader to replace. */
const required: Record<string, string> = {
  "actor_rollout_ref.model.path": "model.gguf",
  "data.train_files": "train.parquet",
};

/** Keys with paths to Hugging Face models or Python files in verl, and the files that Cria takes instead. */
const paths: [key: string, isRight: RegExp, advice: string][] = [
  ["actor_rollout_ref.model.path", /\.gguf$|^hf:/, "must be a GGUF file of that model"],
  ["critic.model.path", /\.gguf$|^hf:/, "must be a GGUF file of that model"],
  [
    "custom_reward_function.path",
    /\.[cm]?[jt]s$/,
    "must be a JavaScript or TypeScript module that exports the function",
  ],
  ["data.custom_cls.path", /\.[cm]?[jt]s$/, "must be a JavaScript or TypeScript module that exports the class"],
  ["data.sampler.class_path", /\.[cm]?[jt]s$/, "must be a JavaScript or TypeScript module that exports the class"],
];

/**
 * Converts a script's overrides, applied to a raw config.
 * @param missing base configs that could not be found: it is unknown whether they ask for several turns.
 */
export function convertConfig(
  raw: Record<string, unknown>,
  overrides: readonly Field[] = [],
  missing: readonly SetAside[] = [],
): Conversion {
  const toFillIn = [...missing];
  for (const { text, unknown } of overrides) {
    const key = OVERRIDE.exec(text)?.[2] ?? text;
    try {
      if (unknown.length > 0) {
        toFillIn.push({ key, reason: [...new Set(unknown)].join("; ") });
        if (key in required) writeKey(raw, key, text.slice(text.indexOf("=") + 1));
      } else applyOverride(raw, text);
    } catch (error) {
      toFillIn.push({ key, reason: (error as CriaError).message.split("\n").join(" ") });
    }
  }
  const open = toFillIn.map(({ key }) => key);
  if (isStreamed(raw) && listStreamedFactors().some((key) => open.includes(key)))
    toFillIn.push({ key: BATCH_SIZE, reason: `is streamed: it is ${listStreamedFactors().join(" x ")}` });
  const { setAside, refusals } = setAsideForeignKeys(raw, { miniBatch: VERL_MINI_BATCH, open });
  const unsupported = refusals.map(({ key, received, remedy }) => ({
    key,
    reason: [`${JSON.stringify(received)} is not supported yet`, remedy].filter(Boolean).join("; "),
  }));
  for (const [key, placeholder] of Object.entries(required)) {
    const value = readKey(raw, key);
    if (value !== undefined && value !== null) continue;
    writeKey(raw, key, placeholder);
    if (!toFillIn.some((entry) => entry.key === key)) toFillIn.push({ key, reason: "is not given" });
  }
  removeWhatDoesNotParse(raw, unsupported);
  for (const [key, isRight, advice] of paths) {
    const value = readKey(raw, key);
    if (typeof value === "string" && !isRight.test(value) && !toFillIn.some((entry) => entry.key === key))
      toFillIn.push({ key, reason: `${value}: ${advice}` });
  }
  const verlDefaults = adoptDefaults(raw, new Set(toFillIn.map(({ key }) => key)), missing.length > 0);
  return { config: raw, toFillIn, unsupported, setAside, verlDefaults, notes: [] };
}

function removeWhatDoesNotParse(raw: Record<string, unknown>, unsupported: SetAside[]): void {
  for (;;) {
    const { unknown, wrong } = inspectConfig(trainConfigSchema, raw);
    const problems = [
      ...unknown.map(({ key, nearest }) => ({
        key,
        reason: `is not a key that Cria knows${nearest ? `; perhaps ${nearest}` : ""}`,
      })),
      ...wrong.map(({ key, expected, received }) => ({ key, reason: `${received} cannot be taken: ${expected}` })),
    ];
    if (problems.length === 0) return;
    const before = JSON.stringify(raw);
    for (const { key, reason } of problems) {
      // For a section, each of its keys that has a value.
      const value = readKey(raw, key);
      for (const leaf of isMapping(value) ? listLeaves(value, key) : [key]) unsupported.push({ key: leaf, reason });
      removePart(raw, key);
    }
    // Nothing was removed: stop, or this would loop forever.
    if (JSON.stringify(raw) === before) return;
  }
}

/** Removes a key, or else its nearest enclosing section in the config. */
function removePart(raw: Record<string, unknown>, key: string): void {
  for (let path = key; path !== ""; path = path.slice(0, Math.max(0, path.lastIndexOf("."))))
    if (removeKey(raw, path).found) return;
}

/** Keys that only one loss or one estimator reads. */
const readers: [prefix: string, key: string, value: string][] = [
  ["critic.", "algorithm.adv_estimator", "gae"],
  ["actor_rollout_ref.actor.tau_neg", "actor_rollout_ref.actor.policy_loss.loss_mode", "sapo"],
  ["actor_rollout_ref.actor.policy_loss.ppo_kl_coef", "actor_rollout_ref.actor.policy_loss.loss_mode", "kl_cov"],
];

/** Sets keys that are missing and affect training to verl's defaults, except keys that the reader must fill in. */
function adoptDefaults(raw: Record<string, unknown>, open: ReadonlySet<string>, isIncomplete: boolean): string[] {
  // Tools and interactions imply several turns, even if the reader must still name them. Without either there is one
  // turn.
  const section = readKey(raw, MULTI_TURN);
  const said = [...open, ...Object.keys(isMapping(section) ? section : {}).map((key) => `${MULTI_TURN}.${key}`)];
  const hasTurns = isIncomplete || said.some((key) => MEANS_TURNS.test(key));
  const adopted: string[] = [];
  const defaults = listVerlDefaults();
  const read = (key: string) => readKey(raw, key) ?? defaults.find((entry) => entry.key === key)?.verl;
  for (const { key, verl, adopts } of defaults) {
    if (!adopts || open.has(key) || readKey(raw, key) !== undefined) continue;
    if (readers.some(([prefix, other, value]) => key.startsWith(prefix) && read(other) !== value)) continue;
    if (key === `${MULTI_TURN}.enable` && hasTurns) continue;
    writeKey(raw, key, structuredClone(verl));
    adopted.push(key);
  }
  return adopted;
}
