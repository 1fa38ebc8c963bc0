import { KlController } from "@cria/algorithms";
import { countLikeliest, usesReference } from "@cria/algorithms/internal";
import { ConfigError, type PolicyEngine } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import type { DatasetRow } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { TrainingBus } from "../cluster/training-bus.js";
import { readContextSize } from "../config/derived-values.js";
import { importDevice } from "../config/import/device.js";
import { importSettings, type Settings } from "../config/import/settings.js";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { makeSay, type Report } from "../events.js";
import { checkLagFits } from "../memory/check-lag-fits.js";
import { describeVision, makeImageAccess } from "../policy/describe-vision.js";
import { loadConfiguredModel } from "../policy/load-configured-model.js";
import { loadReference } from "../policy/load-policy.js";
import { Policy } from "../policy/policy.js";
import { RolePolicy } from "../policy/role-policy.js";
import { loadGroupSampler } from "../replay-buffer/open-group-sampler.js";
import type { JudgedRewards } from "../rewards/judged-rewards.js";
import { openCritic } from "../step/critic.js";
import { readLossWeights } from "../step/loss-weights.js";
import type { StepParts } from "../step/step-parts.js";
import { needsReference, Teachers } from "../step/teachers.js";
import { Disposables } from "../task/disposables.js";
import { checkSeen, filterData, openData } from "../task/open-data.js";
import { prepareDemonstrations } from "../task/open-demonstrations.js";
import { fitToolFormat, openEnvironment } from "../task/open-environment.js";
import { loadSampler, type RowSamplerSource } from "../task/open-sampler.js";
import type { Task } from "../task/task.js";
import { loadAlgorithms } from "../user-code/load-algorithms.js";
import { providePackages } from "../user-code/provide-packages.js";
import { openRegistries, type Registries } from "../user-code/registries.js";
import { findBranching } from "./check-branching.js";
import { checkTrainConfig } from "./check-train-config.js";

/** Everything that a config names, opened: model, data, tools, reward. */
export interface Training extends StepParts {
  /** The config in a file's form, for records of the run. */
  config: TrainConfig;
  trainRows: DatasetRow[];
  valRows: DatasetRow[];
  /** Sampler of the rows; null: steps get passes over the rows. */
  rowSampler: RowSamplerSource | null;
  /** `environment.reward` if models judge in addition to the rules; else null. */
  judgedRewards: JudgedRewards | null;
  dispose(): Promise<void>;
}

export interface OpenTrainingOptions {
  /** Rows, tools and rewards in memory, which replace those that the config names. */
  task?: Task<object>;
  /** Held-out rows, which replace those that the config names. */
  valRows?: readonly DatasetRow[];
  /** Estimators and losses in memory, under the names in the config. */
  registries?: ReturnType<typeof openRegistries>;
  /** True if tool calls are read as the model's chat template prints them, whatever the config says; default false. */
  findsToolFormat?: boolean;
  /** Machines that share the work; default: this process does all the work. */
  bus?: TrainingBus;
  /** A ready engine instead of the config's model, for tests. */
  engine?: PolicyEngine;
  signal?: AbortSignal;
  report?: Report;
}

const { any, object } = optionChecks;

const openingChecks: ChecksOf<Required<OpenTrainingOptions>> = {
  task: object,
  valRows: [Array.isArray, "a list of rows"],
  registries: object,
  findsToolFormat: optionChecks.flag,
  bus: object,
  engine: any,
  signal: optionChecks.signal,
  report: optionChecks.function,
};

/** Implements `openTraining` of when-called.ts. */
export function openTraining(
  config: TrainConfig,
  folder: string,
  options: OpenTrainingOptions = {},
): Promise<Training> {
  providePackages();
  return Disposables.open((open) => {
    checkOptions("openTraining", options, openingChecks);
    return openParts(config, folder, options, open);
  });
}

/** @throws ConfigError for settings that only conversations of this process follow. */
function checkFitsBus(config: TrainConfig, registries: Registries): void {
  const { trainer, distillation, actor_rollout_ref } = config;
  const { rollout } = actor_rollout_ref;
  const refuse = (problem: string, subject: string, expected: string, received: string) =>
    new ConfigError(problem, {
      code: "config/bad-value",
      subject,
      expected: `${expected}, where workers of a bus hold conversations`,
      received,
    });
  if (trainer.journal) throw refuse("records what is asked in this process alone", "trainer.journal", "false", "true");
  if (rollout.partial_rollout !== "carry_on")
    throw refuse(
      "changes the policy between two turns in this process alone",
      "actor_rollout_ref.rollout.partial_rollout",
      "carry_on",
      rollout.partial_rollout,
    );
  const { lora_roles: roles } = actor_rollout_ref.model;
  if (roles)
    throw refuse(
      "has adapters that take turns in this process alone",
      "actor_rollout_ref.model.lora_roles",
      "null",
      roles.join(", "),
    );
  const branching = findBranching(config, registries);
  if (branching)
    throw refuse(
      "goes on from conversations of this process alone",
      branching.key,
      branching.otherwise,
      branching.value,
    );
  if (distillation.enabled && distillation.guided.share > 0)
    throw refuse(
      "lets the teacher sample turns in this process alone",
      "distillation.guided.share",
      "0",
      String(distillation.guided.share),
    );
}

async function openParts(
  config: TrainConfig,
  folder: string,
  { task, valRows, bus, signal, report, ...options }: OpenTrainingOptions,
  open: Disposables,
): Promise<Training> {
  // Cheap checks first: a typo must not cost the time of loading a model.
  const registries = options.registries ?? openRegistries();
  await loadAlgorithms(config, folder, registries);
  const settings = importSettings(config);
  checkTrainConfig(config, settings, registries, task?.definition);
  if (bus) checkFitsBus(config, registries);
  await checkLagFits(config, folder, { sends: bus !== undefined });
  await loadGroupSampler(settings.algorithm.replay, { folder, seed: settings.seed }, registries);
  const sampleRows = await loadSampler(settings.data.sampler, folder, registries);
  const allRows = await openData(settings, folder, {
    train: await task?.load(),
    val: valRows,
    section: config.data,
  });
  const lossWeights = readLossWeights(settings, allRows.train);
  const openDemonstrations = prepareDemonstrations(settings, folder);
  const { environment, judgedRewards, dispose } = await openEnvironment(settings.environment, folder, {
    registries,
    rows: [...allRows.train, ...allRows.val],
    task: task?.definition,
    device: importDevice(config),
    report,
  });
  open.add(dispose);
  // Check before loading a model that could not see them.
  if (!options.engine && config.actor_rollout_ref.model.mmproj === null)
    checkSeen([...allRows.train, ...allRows.val], environment, {});
  const engine = options.engine ?? (await loadConfiguredModel(config, folder));
  open.add(() => engine.dispose());
  const tokenizer = DeltaTokenizer.forModel(engine, {
    kwargs: settings.data.templateKwargs,
    allowControlTokens: settings.data.allowControlTokens,
  });
  checkSeen([...allRows.train, ...allRows.val], environment, engine);
  const rows = await filterData(allRows, settings.data, folder, { engine, tokenizer, environment, signal, report });
  const reference = await openReference(config, settings, engine, folder);
  if (reference !== engine) open.add(() => reference?.dispose());
  const parts = { engine, tokenizer, reference, seed: settings.seed };
  const policy = settings.roles ? await RolePolicy.open(parts, settings.roles) : new Policy(parts);
  if (options.findsToolFormat) fitToolFormat(environment, policy);
  const critic = await openCritic(config, settings, folder, registries);
  open.add(() => critic?.engine.dispose());
  const { distillation } = settings;
  const teachers = distillation
    ? await Teachers.open(
        {
          options: distillation,
          policy,
          environment,
          trainRows: rows.train,
          topk: countLikeliest(settings.loss.teacher),
          lossWeights,
        },
        { folder, ...importDevice(config) },
      )
    : null;
  open.add(() => teachers?.dispose());
  const demonstrations = await openDemonstrations(tokenizer, {
    maxLength: readContextSize(config),
    images: makeImageAccess(settings.environment.images),
    onNote: makeSay(report),
  });
  const training: Training = {
    config,
    settings,
    registries,
    policy,
    environment,
    critic,
    teachers,
    demonstrations,
    lossWeights,
    judgedRewards,
    klController: new KlController(settings.algorithm.klController),
    estimatorState: { current: {} },
    trainRows: rows.train,
    valRows: rows.val,
    rowSampler: sampleRows?.(task ? rows.train.map(({ extraInfo }) => extraInfo.row as object) : rows.train) ?? null,
    coordination: null,
    signal,
    dispose: () => open.dispose(),
  };
  if (bus) {
    const coordination = await bus.coordinate({ ...training, configFolder: folder, task, report });
    open.add(() => coordination.close());
    training.coordination = coordination;
  }
  return training;
}

async function openReference(
  config: TrainConfig,
  { loss, algorithm, distillation }: Settings,
  engine: PolicyEngine,
  folder: string,
): Promise<PolicyEngine | null> {
  if (!usesReference(loss) && !algorithm.useKlInReward && !needsReference(distillation)) return null;
  if (engine.info.trainable === "lora") return engine;
  const { model } = config.actor_rollout_ref;
  return loadReference(resolvePath(folder, model.path), {
    ...importDevice(config),
    ...describeVision(model, folder),
    scoredContextSize: readContextSize(config),
  });
}
