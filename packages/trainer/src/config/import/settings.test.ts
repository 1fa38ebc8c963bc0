import { defaultPolicyLoss } from "@cria/algorithms";
import { policyLossParameters, policyLossTerms } from "@cria/algorithms/schemas";
import { defaultMultiTurn } from "@cria/rollout/internal";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { checkConfig } from "../check-config.js";
import { algorithmOptions } from "../options/algorithm.js";
import { dataOptions } from "../options/data.js";
import { environmentOptions } from "../options/environment.js";
import { loraOptions } from "../options/model.js";
import { multiTurnOptions } from "../options/multi-turn.js";
import { runOptions, saveOptions, validationTimes } from "../options/run.js";
import { aheadOptions, samplingOptions, validationOptions } from "../options/sampling.js";
import { criticUpdateOptions, updateOptions } from "../options/updates.js";
import { writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import { trainKeys } from "./config-keys.js";
import { importSettings } from "./settings.js";

function importOf(keys: Record<string, unknown> = {}) {
  const raw = { actor_rollout_ref: { model: { path: "m.gguf" } }, data: { train_files: "t.jsonl" } };
  for (const [key, value] of Object.entries(keys)) writeKey(raw, key, value);
  return importSettings(checkConfig(trainConfigSchema, raw, "c.yaml"));
}

const schemas = {
  ahead: aheadOptions,
  algorithm: algorithmOptions,
  criticUpdates: criticUpdateOptions,
  data: dataOptions,
  environment: environmentOptions,
  loss: policyLossParameters,
  lora: loraOptions,
  lossTerms: policyLossTerms,
  run: runOptions,
  sampling: samplingOptions,
  save: saveOptions,
  updates: updateOptions,
  validation: validationOptions,
  validationTimes,
};

/** Options whose form in a config is another one. */
const others = [
  // Null is clip_ratio there.
  "loss.clipRatioLow",
  "loss.clipRatioHigh",
  // multi_turn.enable says it.
  "environment.hasInteractions",
];

/** Options, those of options too. */
function listOptions(name: string, schema: z.core.$ZodType): [name: string, schema: z.core.$ZodType][] {
  const inner =
    schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable
      ? listOptions(name, schema.def.innerType as z.core.$ZodType)
      : [];
  if (schema instanceof z.ZodObject)
    return Object.entries(schema.shape).flatMap(([key, field]) => listOptions(`${name}.${key}`, field));
  return inner.some(([found]) => found !== name) ? inner : [[name, schema]];
}

describe("options and keys of a config", () => {
  const options = Object.entries(schemas).flatMap(([name, schema]) => listOptions(name, schema));

  it("each option has a key of its own, or one in another form", () => {
    expect(options.length).toBeGreaterThan(90);
    const without = options.filter(([, schema]) => trainKeys.find(schema) === undefined).map(([name]) => name);
    expect(without.sort()).toEqual([...others].sort());
    const keys = options.flatMap(([, schema]) => trainKeys.find(schema) ?? []);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("have the same defaults", () => {
    const settings = importOf();
    expect(settings.loss).toEqual(defaultPolicyLoss);
    expect(settings.environment).toEqual(environmentOptions.parse({}));
    expect(settings.algorithm).toEqual(algorithmOptions.parse({}));
    expect(settings.updates).toEqual(updateOptions.parse({}));
    expect(settings.critic).toMatchObject(criticUpdateOptions.parse({}));
    expect(settings.data).toEqual(dataOptions.parse({ trainFiles: ["t.jsonl"] }));
    expect(settings.sampling).toEqual({ n: 8, temperature: 1, topP: 1, topK: 0, minP: 0, tree: null });
    expect(settings.validation).toEqual({ n: 1, temperature: 0, topP: 1, topK: 0, minP: 0, tree: null });
    expect(multiTurnOptions.parse({})).toEqual(defaultMultiTurn);
  });

  it("a given value comes through, also in verl's form", () => {
    const rollout = "actor_rollout_ref.rollout";
    expect(
      importOf({ [`${rollout}.min_p`]: 0.1, [`${rollout}.top_k`]: 7, [`${rollout}.val_kwargs.min_p`]: 0.2 }),
    ).toMatchObject({ sampling: { minP: 0.1, topK: 7 }, validation: { minP: 0.2, topK: 0 } });
    const oneTurn = { enable: false, tool_config_path: "t.yaml", max_tool_response_length: 9 };
    expect(importOf({ [`${rollout}.multi_turn`]: oneTurn }).environment).toMatchObject({
      toolConfigPath: null,
      hasInteractions: false,
      multiTurn: { maxAssistantTurns: 1, maxToolResponseLength: 9 },
    });
    expect(importOf({ "critic.ppo_epochs": 3, "actor_rollout_ref.actor.ppo_mini_batch_size": 5 }).critic).toMatchObject(
      {
        epochs: 3,
        miniBatchSize: 5,
        path: "m.gguf",
      },
    );
    expect(importOf({ "data.max_response_length": 7 }).environment.maxResponseLength).toBe(7);
    expect(importOf({ "algorithm.pf_ppo.weight_pow": 3 }).algorithm.filtration).toBeNull();
    const filtration = { "algorithm.use_pf_ppo": true, "algorithm.pf_ppo.weight_pow": 3 };
    expect(importOf(filtration).algorithm.filtration).toEqual({ method: "pow", weightPow: 3 });
  });
});
