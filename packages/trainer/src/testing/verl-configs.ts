import { readFileSync } from "node:fs";
import { join } from "node:path";
import { applyOverride } from "../config/apply-override.js";
import { writeKey } from "../config/raw-config.js";

export const verlVersions = ["v0.7.0", "v0.9"] as const;
export type VerlVersion = (typeof verlVersions)[number];
type Values = Record<string, unknown>;

const read = <T>(name: string): T =>
  JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "fixtures", "verl-keys", `${name}.json`), "utf8"));

/** Values of a config's required keys. */
export const makeRequiredKeys = (): Values => ({
  actor_rollout_ref: { model: { path: "m.gguf" } },
  data: { train_files: "t.jsonl" },
});

/** verl's defaults, by dotted key. */
export const readVerlDefaults = (version: VerlVersion): Values => read(`defaults-${version}`);

/** verl's default file as a raw config. */
export function makeDefaultConfig(version: VerlVersion): Values {
  const raw = makeRequiredKeys();
  for (const [key, value] of Object.entries(readVerlDefaults(version))) writeKey(raw, key, structuredClone(value));
  return raw;
}

/** Values of shell variables for which the defaults say nothing. */
const shellValues: Values = {
  "actor_rollout_ref.actor.policy_loss.tau_pos": 1,
  "actor_rollout_ref.actor.policy_loss.tau_neg": 1.05,
};

/** Examples of `cria sft`, whose config is another one. */
const isForSft = (script: string) => script.startsWith("examples/sft/");

/** verl's example scripts, and what makes a raw config of the keys that each sets. */
export function listScripts(version: VerlVersion): [name: string, make: () => Values][] {
  const defaults = readVerlDefaults(version);
  const scripts = Object.entries(read<Record<string, Record<string, string>>>(`scripts-${version}`));
  return scripts
    .filter(([name]) => !isForSft(name))
    .map(([name, keys]) => [
      name,
      () => {
        const raw = makeRequiredKeys();
        for (const [key, text] of Object.entries(keys)) {
          // A shell variable: the fixture does not know its value, so the default stands for it.
          const isVariable = text.includes("$") || text.endsWith(",") || text.endsWith(")");
          const value = isVariable ? (shellValues[key] ?? defaults[key] ?? null) : undefined;
          if (value === undefined) applyOverride(raw, `${key}=${text}`);
          else if (value !== null) writeKey(raw, key, value);
        }
        return raw;
      },
    ]);
}
