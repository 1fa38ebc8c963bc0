import {
  type ChecksOf,
  checkOptions,
  isObject,
  isText,
  type OptionCheck,
  optionChecks,
  refuseOption,
} from "@cria/core/internal";
import { taskChecks } from "../task/check-definition.js";
import { isTask } from "../task/task.js";
import { sharedOptions } from "./shared-options.js";
import type { TrainOptions } from "./train-options.js";

const { any, text } = optionChecks;
const { shape: shared } = sharedOptions;

const isListOfTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isNameOrFunction = (value: unknown) => isText(value) || typeof value === "function";

/** Checks of options whose values the config's schema checks later. */
const leaveToConfig = <Name extends string>(shape: Readonly<Record<Name, unknown>>) =>
  Object.fromEntries(Object.keys(shape).map((name) => [name, any])) as unknown as Record<Name, OptionCheck>;

/** Checks a group of shared options. @param own checks of values that are read before the config's schema checks them. */
function checkGroup<Options extends object>(
  { shape }: { shape: Readonly<Record<keyof Options & string, unknown>> },
  own: Partial<ChecksOf<Options>> = {},
  isRight: OptionCheck[0] = isObject,
): OptionCheck {
  return [isRight, `{ ${Object.keys(shape).join(", ")} }`, { ...leaveToConfig(shape), ...own }];
}

const orNull = ([isRight, expected, within]: OptionCheck): OptionCheck => [
  (value) => value === null || isRight(value),
  `${expected}, or null`,
  within,
];

type Group<Name extends keyof TrainOptions> = Required<NonNullable<TrainOptions[Name]>>;

const trainChecks: ChecksOf<Required<TrainOptions>> = {
  ...leaveToConfig(shared),
  model: text,
  mmproj: text,
  task: [(value) => isObject(value) && isTask(value), "a task: defineTask({ rows, reward, ... })"],
  rows: taskChecks.rows,
  agent: taskChecks.agent,
  validation: checkGroup<Group<"validation">>(shared.validation, { rows: taskChecks.rows }),
  tree: checkGroup<Group<"tree">>(shared.tree),
  sampler: [isNameOrFunction, 'a class of samplers, a function that picks rows, or a name: "difficulty"'],
  replay: checkGroup<Group<"replay">>(shared.replay, {
    sampling: [isNameOrFunction, 'a class of samplers, a function that picks groups, or a name: "uniform"'],
  }),
  lora: orNull(
    checkGroup<Group<"lora">>(shared.lora, {
      targets: [isListOfTexts, "a list of names of layers"],
      path: text,
      roles: [isListOfTexts, "a list of names of roles"],
    }),
  ),
  advantages: [
    (value) => isText(value) || typeof value === "function" || isObject(value),
    'an estimator, or its name: "grpo"',
  ],
  loss: [isObject, "what one of losses makes: losses.ppo()"],
  teacher: checkGroup<Group<"teacher">>(shared.teacher, { model: text, adapter: text, hint: text, correction: text }),
  demonstrations: checkGroup<Group<"demonstrations">>(
    shared.demonstrations,
    { files: [isListOfTexts, "a list of files"] },
    (value) => isObject(value) && "files" in value && Array.isArray(value.files),
  ),
  lossWeights: checkGroup<Group<"lossWeights">>(shared.lossWeights),
  folder: text,
  resume: [(value) => typeof value === "boolean" || isText(value), "true, false, or the path of a checkpoint"],
  save: checkGroup<Group<"save">>(shared.save),
  trackers: [
    (value) => Array.isArray(value) && value.every((each) => isText(each) || isObject(each)),
    "a list of names and trackers",
  ],
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
