import { type ChecksOf, checkOptions, isObject, isText, optionChecks, refuseOption } from "@cria/core/internal";
import { taskChecks } from "../task/check-definition.js";
import { isTask } from "../task/task.js";
import type {
  DemonstrationsOptions,
  LossWeightsOptions,
  ReplayedGroupsOptions,
  TeacherOptions,
  TrainOptions,
  ValidationOptions,
} from "./train-options.js";

const { any, text } = optionChecks;

const loraChecks: ChecksOf<Required<NonNullable<TrainOptions["lora"]>>> = {
  rank: any,
  alpha: any,
  targets: [(value) => Array.isArray(value) && value.every(isText), "a list of names of layers"],
  path: text,
};

const teacherChecks: ChecksOf<Required<TeacherOptions>> = {
  model: text,
  adapter: text,
  weights: any,
  hint: text,
  correction: text,
  coefficient: any,
  taskRewards: any,
  estimate: any,
  topk: any,
  policyGradient: any,
  maxLoss: any,
  turnWeights: any,
  guidedShare: any,
  guidedSteps: any,
};

const demonstrationChecks: ChecksOf<Required<DemonstrationsOptions>> = {
  files: [(value) => Array.isArray(value) && value.every(isText), "a list of files"],
  size: any,
  keep: any,
};

const weightChecks: ChecksOf<Required<LossWeightsOptions>> = { key: any, rows: any };

const replayChecks: ChecksOf<Required<ReplayedGroupsOptions>> = {
  share: any,
  size: any,
  maxAge: any,
  sampling: [
    (value) => isText(value) || typeof value === "function",
    'a class of samplers, a function that picks groups, or a name: "uniform"',
  ],
  samplingKwargs: any,
};

const validationChecks: ChecksOf<Required<ValidationOptions>> = {
  rows: taskChecks.rows,
  every: any,
  before: any,
  n: any,
  temperature: any,
};

const saveChecks: ChecksOf<Required<NonNullable<TrainOptions["save"]>>> = { every: any, minutes: any, keep: any };

const treeChecks: ChecksOf<Required<NonNullable<TrainOptions["tree"]>>> = { expansions: any, rounds: any };

/** Checks of options. Options with `any` are checked later, as keys of the config. */
const trainChecks: ChecksOf<Required<TrainOptions>> = {
  model: text,
  mmproj: text,
  task: [(value) => isObject(value) && isTask(value), "a task: defineTask({ rows, reward, ... })"],
  rows: taskChecks.rows,
  agent: taskChecks.agent,
  validation: [isObject, "{ rows, every, before, n, temperature }", validationChecks],
  steps: any,
  epochs: any,
  batchSize: any,
  n: any,
  tree: [isObject, "{ expansions, rounds }", treeChecks],
  temperature: any,
  lag: any,
  partialRollout: any,
  sampler: [
    (value) => isText(value) || typeof value === "function",
    'a class of samplers, a function that picks rows, or a name: "difficulty"',
  ],
  replay: [isObject, "{ share, size, maxAge, sampling, samplingKwargs }", replayChecks],
  seed: any,
  learningRate: any,
  lora: [(value) => value === null || isObject(value), "{ rank, alpha, targets, path }, or null", loraChecks],
  advantages: [
    (value) => isText(value) || typeof value === "function" || isObject(value),
    'an estimator, or its name: "grpo"',
  ],
  loss: [isObject, "what one of losses makes: losses.ppo()"],
  demonstrations: [
    (value) => isObject(value) && Array.isArray((value as { files?: unknown }).files),
    '{ files: ["demonstrations.jsonl"], size, keep }',
    demonstrationChecks,
  ],
  lossWeights: [isObject, "{ key, rows }", weightChecks],
  teacher: [isObject, "{ model, adapter, hint, coefficient, ... }", teacherChecks],
  name: any,
  folder: text,
  resume: [(value) => typeof value === "boolean" || isText(value), "true, false, or the path of a checkpoint"],
  save: [isObject, "{ every, minutes, keep }", saveChecks],
  journal: any,
  trackers: [
    (value) => Array.isArray(value) && value.every((each) => isText(each) || isObject(each)),
    "a list of names and trackers",
  ],
  threads: any,
  device: any,
  bus: [isObject, "a bus: await openNatsBus({ servers, role })"],
  signal: optionChecks.signal,
  report: optionChecks.function,
  config: [isObject, "keys of a config, nested as in YAML"],
  configFolder: text,
};

/** @throws ConfigError naming the unknown or wrong option. */
export function checkTrainOptions(options: TrainOptions): void {
  checkOptions("train", options, trainChecks);
  if (options.validation && options.validation.rows === undefined)
    throw refuseOption("train: validation.rows", "is missing", taskChecks.rows[1], undefined);
}
