import { resolve } from "node:path";
import type { AdvantageEstimator, PolicyLossOptions } from "@cria/algorithms";
import { ConfigError, CriaError, type Registry } from "@cria/core";
import { refuseOption } from "@cria/core/internal";
import { checkConfig } from "../config/check-config.js";
import { exportLoss } from "../config/import/loss.js";
import { loadConfig } from "../config/load-config.js";
import { dataOptions, samplerOptions } from "../config/options/data.js";
import { loraOptions } from "../config/options/model.js";
import { multiTurnOptions } from "../config/options/multi-turn.js";
import { updateOptions } from "../config/options/updates.js";
import { resolveAllPaths } from "../config/paths.js";
import { readKey, writeKey } from "../config/raw-config.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import { areFiles } from "../task/check-definition.js";
import { exportTask, nameFiles, registerAgent, resolveFile } from "../task/task-config.js";
import { openRegistries, type Registries } from "../user-code/registries.js";
import { checkTrainOptions } from "./check-train-options.js";
import { keyOf, namedKeys, type SharedOptions, sharedKeys } from "./shared-options.js";
import type { PartialConfig, ReplayedGroupsOptions, TrainOptions } from "./train-options.js";

/** The config that the options of `train` describe, and the values in memory to which its names refer. */
export interface MadeConfig {
  config: TrainConfig;
  registries: Registries;
  /** True if tool calls are read as the model's chat template prints them, because no format was specified. */
  findsToolFormat: boolean;
}

/** Name of a config key for the user of these options. */
function nameOption(options: TrainOptions, key: string): string {
  // Options that are records have keys below theirs.
  const known = namedKeys.find(([, own]) => own === key || key.startsWith(`${own}.`));
  if (!known || readKey(options, known[0]) === undefined) return `config.${key}`;
  return `${known[0]}${key.slice(known[1].length)}`;
}

/**
 * Replaces config keys in a text by the options that set them. Keys whose option was not given stay, unless another
 * option of the same group was: with `teacher`, all of its keys are options.
 */
export function nameOptions(options: TrainOptions, text: string): string {
  const entries = namedKeys.filter(([option, key]) => {
    if (readKey(options, option) !== undefined) return true;
    const [group, ...rest] = option.split(".") as [keyof TrainOptions, ...string[]];
    return rest.length > 0 && options[group] != null && readKey(options.config ?? {}, key) === undefined;
  });
  return entries.reduce(
    (named, [option, key]) =>
      named.replaceAll(new RegExp(`(?<![\\w.])${key.replaceAll(".", "\\.")}(?!\\w|\\.\\w)`, "g"), option),
    text,
  );
}

/**
 * Names options instead of config keys in an error of a training whose config has been made. Changes the error itself,
 * which keeps its class, code and stack.
 */
export function nameOptionsIn(options: TrainOptions, error: unknown): unknown {
  if (!(error instanceof CriaError)) return error;
  const name = (text: string) => nameOptions(options, text);
  const { subject } = error;
  const named = name(subject) === subject ? subject : `train: ${name(subject)}`;
  for (const field of ["message", "stack"] as const) error[field] = name(error[field]!.replace(subject, () => named));
  const { expected, remedy } = error;
  Object.assign(error, { subject: named, expected: expected && name(expected), remedy: remedy && name(remedy) });
  return error;
}

/** Makes the config of a training. @throws ConfigError naming every wrong key */
export function makeConfig(options: TrainOptions): MadeConfig {
  checkTrainOptions(options);
  const registries = openRegistries();
  if (options.task) registerAgent(registries, options.task.definition);
  const raw = makeRaw(options, (registry, value, name = "(in memory)") => {
    (registries[registry] as Registry<unknown>).register(name, value);
    return name;
  });
  if (!options.task && readKey(raw, "data.train_files") === undefined)
    throw refuseOption("train: task", "is missing", "defineTask({ rows, reward, ... }), or rows and agent", undefined);
  if (readKey(raw, "actor_rollout_ref.model.path") === undefined)
    throw refuseOption(
      "train: model",
      "is missing",
      "a GGUF file, or an address: hf:<owner>/<model>:<type>",
      undefined,
    );
  const config = checkConfig(trainConfigSchema, raw, "train", undefined, (key) => nameOption(options, key));
  const findsToolFormat =
    options.task !== undefined && readKey(raw, keyOf(multiTurnOptions.shape.format)) === undefined;
  return { config, registries, findsToolFormat };
}

/**
 * Converts the options to a config that can be written as YAML. Values that neither the options nor their `config`
 * specify are left out. Paths are absolute, so that the file can be anywhere.
 * @throws ConfigError naming everything that exists only in memory: functions, rows, tools, trackers.
 */
export function toConfig(options: TrainOptions): PartialConfig {
  checkTrainOptions(options);
  const inMemory = listInMemory(options);
  if (inMemory.length > 0) {
    throw new ConfigError("cannot be written into a config", {
      code: "config/in-memory",
      subject: inMemory.join(", "),
      expected: "paths: files of rows, a YAML file of tools, ./reward.ts#score",
      received: inMemory.length === 1 ? "a value that came by no path" : "values that came by no path",
      remedy: "move it into a file, and name that",
    });
  }
  const raw = makeRaw(options, (registry) => {
    throw new ConfigError("cannot be written into a config", { code: "config/in-memory", subject: registry });
  });
  resolveAllPaths(raw, options.configFolder ?? process.cwd());
  return raw as PartialConfig;
}

/**
 * Reads a config file as options of `train`; options added to them override it.
 * @param overrides "key.path=value", as on the command line.
 * @throws ConfigError when the file cannot be read, or a key is unknown or wrong.
 */
export function fromConfig(file: string, overrides: readonly string[] = []): TrainOptions {
  const { values, folder } = loadConfig(trainConfigSchema, file, overrides);
  return { config: values, configFolder: folder };
}

/** Registers a value in memory and returns its name. */
type Register = (
  registry:
    | "rowSamplers"
    | "groupSamplers"
    | "advantageEstimators"
    | "policyLosses"
    | "aggregations"
    | "klEstimates"
    | "lossTerms",
  value: unknown,
  name?: string,
) => string;

/** The config of the options: they override its keys, and defaults of `train` those of a config. */
function makeRaw(options: TrainOptions, register: Register): Record<string, unknown> {
  const { task, validation, lora, loss, seed, lag, resume } = options;
  const raw = structuredClone(options.config ?? {}) as Record<string, unknown>;
  const set = (key: string, value: unknown) => value !== undefined && writeKey(raw, key, value);
  /** Sets the default of `train` if neither option nor config has a value. */
  const otherwise = (key: string, value: unknown) => readKey(raw, key) === undefined && set(key, value);
  if (task) exportTask(task.definition, raw);
  const shared = describeShared(options, register);
  for (const [option, key] of sharedKeys) set(key, readKey(shared, option));
  set(keyOf(dataOptions.shape.seed), seed);
  otherwise(keyOf(updateOptions.shape.miniBatchSize), readKey(raw, keyOf(dataOptions.shape.batchSize)) ?? 16);
  if (lora === null) {
    set(keyOf(loraOptions.shape.rank), 0);
    set(keyOf(loraOptions.shape.path), null);
  } else if (!lora?.path) otherwise(keyOf(loraOptions.shape.rank), 16);
  if (options.sampler !== undefined) set(keyOf(samplerOptions.shape.path), null);
  if (options.teacher) set("distillation.enabled", true);
  if (lag !== undefined) set("trainer.v1.trainer_mode", lag > 0 ? "colocate_async" : "sync");
  if (loss) setLoss(loss, raw, register);
  set("trainer.resume_mode", nameResume(resume));
  if (typeof resume === "string") set("trainer.resume_from_path", resolve(resume));
  otherwise("trainer.resume_mode", "disable");
  if (validation?.temperature !== undefined)
    set("actor_rollout_ref.rollout.val_kwargs.do_sample", validation.temperature > 0);
  return raw;
}

/** The shared options as a config has them: paths are absolute, and values in memory have the names that they get. */
function describeShared(options: TrainOptions, register: Register): Partial<SharedOptions> {
  const { model, mmproj, folder, advantages, sampler, lora, replay, teacher, demonstrations, trackers } = options;
  const named = trackers?.filter((tracker) => typeof tracker === "string");
  return {
    ...options,
    model: model && resolveFile(model),
    mmproj: mmproj && resolveFile(mmproj),
    folder: folder && resolve(folder),
    advantages: nameValue(advantages, (value) => register("advantageEstimators", value)),
    sampler: nameValue(sampler, (value) => register("rowSamplers", value)),
    trackers: named && ["console", "file", ...named],
    lora: lora
      ? {
          ...lora,
          targets: lora.targets && [...lora.targets],
          path: lora.path && resolve(lora.path),
          roles: lora.roles && [...lora.roles],
        }
      : undefined,
    replay: replay && { ...replay, sampling: nameValue(replay.sampling, (value) => register("groupSamplers", value)) },
    demonstrations: demonstrations && { ...demonstrations, files: demonstrations.files.map(resolveFile) },
    validation: options.validation && { ...options.validation, rows: nameFiles(options.validation.rows) },
    teacher: teacher && {
      ...teacher,
      model: teacher.model && resolveFile(teacher.model),
      adapter: teacher.adapter && resolve(teacher.adapter),
    },
  };
}

function nameResume(resume: boolean | string | undefined): string | undefined {
  if (resume === undefined) return undefined;
  if (typeof resume === "string") return "resume_path";
  return resume ? "auto" : "disable";
}

function nameValue(
  value: string | AdvantageEstimator | TrainOptions["sampler"] | ReplayedGroupsOptions["sampling"],
  register: (value: unknown) => string,
): string | undefined {
  return value === undefined || typeof value === "string" ? value : register(value);
}

/** Writes a loss as config keys. All keys are set, so that the config's own settings of the loss have no effect. */
function setLoss(loss: PolicyLossOptions, raw: Record<string, unknown>, register: Register): void {
  if (loss.currentCorrection !== null) {
    throw new ConfigError("is made by the config alone", {
      code: "config/bad-value",
      subject: "train: loss.currentCorrection",
      expected: "null",
      received: "a correction",
      remedy: "say it as config: { algorithm: { rollout_correction: { bypass_mode: true, ... } } }",
    });
  }
  if (loss.teacher !== null) {
    throw new ConfigError("has no model that teaches", {
      code: "config/bad-value",
      subject: "train: loss.teacher",
      expected: "null",
      received: "a teacher's term",
      remedy: "train({ teacher: { model, ... } }) says who teaches, and how",
    });
  }
  const name = (registry: Parameters<Register>[0], value: unknown, as?: string) =>
    typeof value === "string" ? value : register(registry, value, as);
  for (const [key, value] of exportLoss(loss, raw, name)) writeKey(raw, key, value);
}

/** Lists options that a config cannot name. */
function listInMemory({ task, validation, advantages, sampler, replay, loss, trackers }: TrainOptions): string[] {
  const found: string[] = [];
  if (task) {
    const { rows, prompt, truth, system, name, agent, tools, interaction, reward } = task.definition;
    if (!areFiles(rows)) found.push("task.rows");
    for (const [name, value] of Object.entries({ prompt, truth, agent, reward }))
      if (typeof value === "function") found.push(nameFunction(`task.${name}`, value));
    if (system !== undefined) found.push("task.system");
    if (name !== undefined) found.push("task.name");
    if (typeof tools === "object")
      tools.forEach((tool, i) => {
        found.push(`task.tools[${i}]${"name" in tool && typeof tool.name === "string" ? ` (${tool.name})` : ""}`);
      });
    if (typeof interaction === "object") found.push(`task.interaction (${interaction.name})`);
  }
  if (validation && !areFiles(validation.rows)) found.push("validation.rows");
  if (typeof sampler === "function") found.push(nameFunction("sampler", sampler));
  if (typeof replay?.sampling === "function") found.push(nameFunction("replay.sampling", replay.sampling));
  if (typeof advantages === "function") found.push(nameFunction("advantages", advantages));
  for (const key of ["lossMode", "lossAggMode"] as const)
    if (loss && typeof loss[key] !== "string") found.push(`loss.${key}`);
  for (const [name, { term }] of Object.entries(loss?.terms ?? {}))
    if (typeof term !== "string") found.push(`loss.terms.${name}`);
  if (loss?.kl && typeof loss.kl.type !== "string") found.push("loss.kl.type");
  trackers?.forEach((tracker, i) => {
    if (typeof tracker !== "string") found.push(`trackers[${i}] (${tracker.name})`);
  });
  return found;
}

const nameFunction = (key: string, value: { name: string }) =>
  value.name !== "" && !key.endsWith(value.name) ? `${key} (function ${value.name})` : key;
