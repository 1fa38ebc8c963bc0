import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { GenerateOptions, PolicyEngine, ValueEngine } from "@cria/core";
import { FakeEngine, type FakeEngineOptions, FakeValueEngine } from "@cria/core/testing";
import type { TinyModels } from "@cria/engine/testing";
import { loadConfig } from "../config/load-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import { openTraining, type Training } from "../run/training.js";
import { type TinyTrainingOptions, writeTinyRun } from "./tiny-training.js";
import { watchCalls, watchEngine } from "./watch-calls.js";

/** Every argument that the engines of a training were given, in order. */
export interface WatchedCalls {
  generate: GenerateOptions[];
  score: Parameters<PolicyEngine["score"]>[];
  train: Parameters<PolicyEngine["train"]>[];
  values: Parameters<ValueEngine["values"]>[];
  trainCritic: Parameters<ValueEngine["train"]>[];
}

export interface FakeTraining extends Training {
  calls: WatchedCalls;
  folder: string;
}

export interface FakeTrainingOptions extends TinyTrainingOptions {
  /** Chooses the model's answers. */
  reply: FakeEngineOptions["reply"];
  /** Take images; default: only text. */
  images?: FakeEngineOptions["images"];
  /** Called with the name of each call, before it is answered. */
  onCall?: (name: keyof WatchedCalls) => void;
  /** As on the command line: "key.path=value". */
  overrides?: readonly string[];
  /** Files beside the config, by name; "{folder}" in an override is their folder. */
  files?: Record<string, string>;
}

/** A training whose policy and critic are scripted, from a config file and overrides as the command line reads them. */
export async function openFakeTraining(models: TinyModels, options: FakeTrainingOptions): Promise<FakeTraining> {
  const { folder } = await writeTinyRun(models, options);
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(folder, name), text);
  const overrides = [
    // The scripted model's tokens are bytes.
    ...["data.max_prompt_length=2000", "actor_rollout_ref.rollout.prompt_length=2000"],
    ...["data.max_response_length=1000", "actor_rollout_ref.rollout.response_length=1000"],
    ...(options.overrides ?? []),
  ].map((override) => override.replace("{folder}", folder));
  const { values: config } = loadConfig(trainConfigSchema, join(folder, "config.yaml"), overrides);
  const calls: WatchedCalls = { generate: [], score: [], train: [], values: [], trainCritic: [] };
  const engine = watchEngine(
    new FakeEngine({ reply: options.reply, images: options.images, contextSize: 8192, referenceScale: 2 }),
    {
      generate: (_, given) => {
        calls.generate.push(given);
        options.onCall?.("generate");
      },
      score: (...args) => {
        calls.score.push(args);
        options.onCall?.("score");
      },
      train: (...args) => {
        calls.train.push(args);
        options.onCall?.("train");
      },
    },
  );
  const training = await openTraining(config, folder, { engine, signal: options.signal });
  if (training.critic) {
    await training.critic.engine.dispose();
    training.critic.engine = watchCalls<ValueEngine>(new FakeValueEngine(), {
      values: (...args) => {
        calls.values.push(args);
        options.onCall?.("values");
      },
      train: (...args) => {
        calls.trainCritic.push(args);
        options.onCall?.("trainCritic");
      },
    });
  }
  return { ...training, calls, folder };
}
