import { teacherTermOptions } from "@cria/algorithms/schemas";
import { z } from "zod";
import { teacherKeys, trainKeys } from "../config/import/config-keys.js";
import { lossKeys } from "../config/import/loss.js";
import { algorithmOptions, replayOptions } from "../config/options/algorithm.js";
import { dataOptions, samplerOptions } from "../config/options/data.js";
import { demonstrationOptions } from "../config/options/demonstrations.js";
import { distillationOptions, teacherOptions } from "../config/options/distillation.js";
import { lossWeightOptions } from "../config/options/loss-weights.js";
import { loraOptions } from "../config/options/model.js";
import { runOptions, saveOptions, validationTimes } from "../config/options/run.js";
import { aheadOptions, samplingOptions, treeOptions, validationOptions } from "../config/options/sampling.js";
import { updateOptions } from "../config/options/updates.js";
import { modelSection } from "../config/sections/model.js";

const { shape: data } = dataOptions;
const { shape: distillation } = distillationOptions;
const { shape: model } = modelSection;
const { shape: sampling } = samplingOptions;
const { shape: teacher } = teacherOptions;
const { shape: term } = teacherTermOptions;
const { shape: updates } = updateOptions;
const { shape: validation } = validationOptions;

/**
 * The options of `train` that a config has too. Each is the schema of the config's option, and so has its meaning,
 * range and default.
 */
export const sharedOptions = z.strictObject({
  ...runOptions.shape,
  ...aheadOptions.shape,
  model: model.path,
  mmproj: model.mmproj,
  n: sampling.n,
  temperature: sampling.temperature,
  batchSize: data.batchSize,
  learningRate: updates.learningRate,
  advantages: algorithmOptions.shape.advantages,
  sampler: samplerOptions.shape.name,
  lora: loraOptions,
  save: saveOptions,
  tree: treeOptions,
  replay: replayOptions,
  lossWeights: lossWeightOptions,
  demonstrations: demonstrationOptions.pick({ files: true, size: true, keep: true }),
  validation: z.strictObject({
    rows: data.valFiles,
    ...validationTimes.shape,
    n: validation.n,
    temperature: validation.temperature,
  }),
  teacher: z.strictObject({
    model: teacher.model,
    adapter: teacher.adapter,
    weights: teacher.weights,
    hint: teacher.hintKey,
    correction: teacher.correctionKey,
    coefficient: term.coefficient,
    taskRewards: term.taskRewards,
    estimate: term.estimate,
    topk: term.topk,
    policyGradient: term.policyGradient,
    maxLoss: term.maxLoss,
    turnWeights: distillation.turnWeights,
    guidedShare: distillation.guidedShare,
    guidedSteps: distillation.guidedSteps,
  }),
});

export type SharedOptions = z.input<typeof sharedOptions>;

/** The teacher of `train` in a config, which may have several. */
const TEACHER = "distillation.teacher_models.teacher_model";

/** Key of an option in the config of `cria train`. */
export const keyOf = (option: z.core.$ZodType): string =>
  trainKeys.find(option) ?? `${TEACHER}.${teacherKeys.find(option)}`;

/** The shared options, those of groups too, and the config keys that say the same. */
export const sharedKeys = listKeys(sharedOptions);

/** All options whose config keys errors name: those that set several keys, and those of a loss, come last. */
export const namedKeys: readonly (readonly [option: string, key: string])[] = [
  ...sharedKeys,
  ...lossKeys.map(([option, key]) => [`loss.${option}`, key] as const),
  ["batchSize", keyOf(updates.miniBatchSize)],
  ["seed", keyOf(data.seed)],
];

function listKeys(options: z.ZodObject, prefix = ""): (readonly [option: string, key: string])[] {
  return Object.entries(options.shape).flatMap(([name, option]) =>
    option instanceof z.ZodObject ? listKeys(option, `${prefix}${name}.`) : [[`${prefix}${name}`, keyOf(option)]],
  );
}
