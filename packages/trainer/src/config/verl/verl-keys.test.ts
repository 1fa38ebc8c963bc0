import { describe, expect, it } from "vitest";
import { listScripts, makeRequiredKeys, readVerlDefaults, verlVersions } from "../../testing/verl-configs.js";
import { checkConfig } from "../check-config.js";
import { writeKey } from "../raw-config.js";
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

describe.each(verlVersions)("the example scripts of verl %s", (version) => {
  it.each(listScripts(version))("%s", (name, make) => {
    const raw = make();
    const { refusals } = setAsideForeignKeys(raw);
    expect(refusals.map(({ key }) => key)).toEqual([]);
    checkConfig(trainConfigSchema, raw, name);
  });
});
