import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { applyOverride } from "./apply-override.js";
import { checkConfig } from "./check-config.js";
import { writeKey } from "./renamed-keys.js";
import { setAsideForeignKeys } from "./set-aside-keys.js";
import { trainConfigSchema } from "./train-config.js";

const versions = ["v0.7.0", "v0.9"] as const;
type Values = Record<string, unknown>;

const read = <T>(name: string): T =>
  JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "fixtures", "verl-keys", `${name}.json`), "utf8"));
const defaults = Object.fromEntries(versions.map((version) => [version, read<Values>(`defaults-${version}`)]));
const scripts = Object.fromEntries(
  versions.map((version) => [version, read<Record<string, Record<string, string>>>(`scripts-${version}`)]),
);

const required = () => ({ actor_rollout_ref: { model: { path: "m.gguf" } }, data: { train_files: "t.jsonl" } });

/** A config of these keys beside the required ones. @throws ConfigError */
function parse(values: Values) {
  const raw: Values = required();
  for (const [key, value] of Object.entries(values)) writeKey(raw, key, structuredClone(value));
  const { setAside, refusals } = setAsideForeignKeys(raw);
  return { config: checkConfig(trainConfigSchema, raw, "verl"), setAside, refusals };
}

describe.each(versions)("verl %s", (version) => {
  it("takes each key of its defaults at its default", () => {
    const wrong = Object.entries(defaults[version]!).flatMap(([key, value]) => {
      try {
        return parse({ [key]: value }).refusals.map((refusal) => `${key}: ${JSON.stringify(refusal)}`);
      } catch (error) {
        return [(error as Error).message];
      }
    });
    expect(wrong).toEqual([]);
  });

  it("takes its whole default file", () => {
    const { refusals, config } = parse(defaults[version]!);
    expect(refusals).toEqual([]);
    expect(config.actor_rollout_ref.actor.optim.lr).toBe(1e-6);
    expect(config.algorithm.adv_estimator).toBe("gae");
  });
});

/** Values of shell variables for which the defaults say nothing. */
const shellValues: Record<string, unknown> = {
  "actor_rollout_ref.actor.policy_loss.tau_pos": 1,
  "actor_rollout_ref.actor.policy_loss.tau_neg": 1.05,
};

/** Examples of `cria sft`, whose config is another one. */
const isForSft = (script: string) => script.startsWith("examples/sft/");

/** What would not be ignored silently: the only keys of all scripts that are refused. */
const refused: Record<string, string> = {
  "examples/ppo_trainer/run_deepseek7b_llm_pfppo.sh": "algorithm.use_pf_ppo",
  "examples/sglang_multiturn/run_qwen0.5b_gsm8k_multiturn_curriculum.sh": "data.sampler.class_path",
};

describe.each(versions)("the example scripts of verl %s", (version) => {
  const names = Object.keys(scripts[version]!).filter((name) => !isForSft(name));

  it.each(names)("%s", (name) => {
    const raw: Values = required();
    for (const [key, text] of Object.entries(scripts[version]![name]!)) {
      // A shell variable: the fixture does not know its value, so the default stands for it.
      const isVariable = text.includes("$") || text.endsWith(",") || text.endsWith(")");
      const value = isVariable ? (shellValues[key] ?? defaults[version]![key] ?? null) : undefined;
      if (value === undefined) applyOverride(raw, `${key}=${text}`);
      else if (value !== null) writeKey(raw, key, value);
    }
    const { refusals } = setAsideForeignKeys(raw);
    expect(refusals.map(({ key }) => key)).toEqual(refused[name] ? [refused[name]] : []);
    checkConfig(trainConfigSchema, raw, name);
  });
});
