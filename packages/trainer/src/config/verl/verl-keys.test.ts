import { describe, expect, it } from "vitest";
import { listScripts, makeRequiredKeys, readVerlDefaults, verlVersions } from "../../testing/verl-configs.js";
import { checkConfig } from "../check-config.js";
import { readKey, writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import { setAsideForeignKeys } from "./set-aside-keys.js";

type Values = Record<string, unknown>;

/** A config of these keys beside the required ones. @throws ConfigError */
function parse(values: Values) {
  const raw = makeRequiredKeys();
  for (const [key, value] of Object.entries(values)) writeKey(raw, key, structuredClone(value));
  const { setAside, refusals } = setAsideForeignKeys(raw);
  return { config: checkConfig(trainConfigSchema, raw, "verl"), setAside, refusals };
}

describe.each(verlVersions)("verl %s", (version) => {
  const defaults = readVerlDefaults(version);

  it("takes each key of its defaults at its default", () => {
    const wrong = Object.entries(defaults).flatMap(([key, value]) => {
      try {
        return parse({ [key]: value }).refusals.map((refusal) => `${key}: ${JSON.stringify(refusal)}`);
      } catch (error) {
        return [(error as Error).message];
      }
    });
    expect(wrong).toEqual([]);
  });

  it("takes its whole default file", () => {
    const { refusals, config } = parse(defaults);
    expect(refusals).toEqual([]);
    expect(config.actor_rollout_ref.actor.optim.lr).toBe(1e-6);
    expect(config.algorithm.adv_estimator).toBe("gae");
  });
});

/** Values other than the default, for keys whose default does not suggest one. */
const others: Values = {
  "distillation.distillation_loss.log_prob_min_clamp": -5,
  "distillation.distillation_loss.loss_max_clamp": 2,
  "distillation.distillation_loss.loss_mode": "k1",
  "distillation.distillation_loss.policy_loss_mode": "gspo",
  "distillation.teacher_models.teacher_model.inference.engine_kwargs": { vllm: { seed: 1 } },
  "distillation.teacher_models.teacher_model.model_path": "teacher.gguf",
};

/** Another value of the same type. */
function vary(key: string, value: unknown): unknown {
  if (key in others) return others[key];
  if (typeof value === "boolean") return !value;
  if (typeof value === "number") return value + 1;
  return Array.isArray(value) ? [1] : "other";
}

describe("verl's keys below skip and distillation, each at another value than its default", () => {
  const keys = Object.entries(readVerlDefaults("v0.9")).filter(([key]) => /^(skip|distillation)\./.test(key));

  /** The fate of a value: it is in the config, named in a warning, or refused. */
  function judge(key: string, value: unknown): "kept" | "warned" | "refused" | "silent" {
    let parsed: ReturnType<typeof parse>;
    try {
      parsed = parse({ [key]: value });
    } catch (error) {
      expect(error).toMatchObject({ code: expect.stringMatching(/^config\//) });
      return "refused";
    }
    const names = (given: readonly { key: string }[]) =>
      given.some((each) => each.key === key || key.startsWith(`${each.key}.`) || each.key.startsWith(`${key}.`));
    if (names(parsed.refusals)) return "refused";
    if (names(parsed.setAside)) return "warned";
    const kept = readKey(parsed.config as unknown as Values, key);
    return JSON.stringify(kept) === JSON.stringify(value) ? "kept" : "silent";
  }

  const verdicts = keys.map(([key, value]) => [key, judge(key, vary(key, value))] as const);
  const listOf = (verdict: string) => verdicts.flatMap(([key, each]) => (each === verdict ? [key] : []));

  it("are kept, warned of or refused, and never dropped in silence", () => {
    expect(keys.length).toBeGreaterThan(40);
    expect(listOf("silent")).toEqual([]);
  });

  it("are refused only where they skip rollouts", () => {
    expect(listOf("refused")).toEqual(["async_rollout", "rollout", "rollout_tq"].map((name) => `skip.${name}.enable`));
  });

  it("are kept where they say how a teacher teaches", () => {
    const kept = listOf("kept");
    expect(kept.filter((key) => !key.includes("_loss."))).toEqual(
      ["enabled", "teacher_key", "teacher_models.teacher_model.key", "teacher_models.teacher_model.model_path"].map(
        (name) => `distillation.${name}`,
      ),
    );
    expect(kept.filter((key) => key.includes("_loss."))).toHaveLength(10);
  });
});

describe.each(verlVersions)("the example scripts of verl %s", (version) => {
  it.each(listScripts(version))("%s", (name, make) => {
    const raw = make();
    const { refusals } = setAsideForeignKeys(raw);
    expect(refusals.map(({ key }) => key)).toEqual([]);
    checkConfig(trainConfigSchema, raw, name);
  });
});
