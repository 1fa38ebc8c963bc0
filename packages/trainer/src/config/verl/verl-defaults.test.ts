import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkConfig, listLeaves } from "../check-config.js";
import { readKey, writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import { setAsideForeignKeys } from "./set-aside-keys.js";
import { listVerlDefaults } from "./verl-defaults.js";

const fixtures = join(import.meta.dirname, "..", "..", "..", "fixtures", "verl-keys");

const required = () => ({ actor_rollout_ref: { model: { path: "m.gguf" } }, data: { train_files: "t.jsonl" } });

/** Required keys, and two that are no defaults: of models that are not enabled. */
const noDefaults = [
  "actor_rollout_ref.model.path",
  "data.train_files",
  "reward_model.model",
  "distillation.teacher_models",
];

/** Keys whose default differs, with verl's. */
function compare(version: string): Map<string, unknown> {
  const raw: Record<string, unknown> = {};
  const defaults = JSON.parse(readFileSync(join(fixtures, `defaults-${version}.json`), "utf8"));
  for (const [key, value] of Object.entries(defaults)) writeKey(raw, key, value);
  setAsideForeignKeys(raw);
  const verl = checkConfig(trainConfigSchema, raw, version);
  const own = checkConfig(trainConfigSchema, required(), "own");
  const differing = listLeaves(trainConfigSchema).filter(
    (key) => JSON.stringify(readKey(own, key)) !== JSON.stringify(readKey(verl, key)),
  );
  const found = new Map(differing.map((key) => [key, readKey(verl, key)]));
  // Keys that are null in verl but not in Cria. 0.9 also has null for sections that it moved elsewhere.
  if (version === "v0.7.0")
    for (const [key, value] of Object.entries(defaults))
      if (value === null && (readKey(own, key) ?? null) !== null) found.set(key, null);
  for (const key of noDefaults) found.delete(key);
  return found;
}

describe("defaults that differ from verl's", () => {
  const known = new Map(listVerlDefaults().map(({ key, verl }) => [key, verl]));

  it.each(["v0.7.0", "v0.9"])("%s: all are listed, with verl's value", (version) => {
    const differing = compare(version);
    expect(differing.size).toBeGreaterThan(25);
    for (const [key, verl] of differing) expect([key, known.get(key)]).toEqual([key, verl]);
  });

  it("lists only defaults that differ", () => {
    const differing = new Set([...compare("v0.7.0").keys(), ...compare("v0.9").keys()]);
    expect([...known.keys()].filter((key) => !differing.has(key))).toEqual([]);
  });
});
