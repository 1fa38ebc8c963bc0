import {
  type LoadedConfig,
  type Report,
  type TrainConfig,
  type TrainingBus,
  TrainingInterrupted,
  type TrainResult,
  train,
} from "@cria/trainer";
import { fetchTrainAddresses, findModelFile, resolvePath } from "@cria/trainer/internal";
import { isNewModel } from "../check-model/known-models.js";
import { listTrainWarnings } from "../doctor/examine-config.js";
import { describeTraining, printTraining } from "../terminal/print-training.js";
import { printValidation } from "../terminal/print-validation.js";
import { quoteWord } from "../terminal/quote-word.js";
import { showEvents } from "../terminal/show-events.js";

interface TrainByCommandOptions {
  json?: boolean;
  signal: AbortSignal;
  /** The config's file and its overrides, as typed; null: there is no such file. */
  words: readonly string[] | null;
  /** Machines that share the work; default: only this process. */
  bus?: TrainingBus;
}

/** Trains by a config, and reports to people or machines. */
export async function trainByCommand(
  { values: config, folder }: Pick<LoadedConfig<TrainConfig>, "values" | "folder">,
  { json = false, signal, words, bus }: TrainByCommandOptions,
): Promise<void> {
  const { logger, rollout_data_dir } = config.trainer;
  const dumped = logger.includes("file") || rollout_data_dir !== null;
  const report = showEvents({ silent: json || !logger.includes("console"), dumped });
  await fetchTrainAddresses(config, { report, signal });
  for (const { name, key, found, remedy } of await listTrainWarnings(config, folder))
    report({ type: "warning", text: `${key ?? name}: ${found}; ${remedy}` });
  const path = resolvePath(folder, config.actor_rollout_ref.model.path);
  const file = await findModelFile(path).catch(() => null);
  if (file !== null && (await isNewModel(file)))
    report({
      type: "notice",
      text: `this model is new on this machine; to check that Cria computes it right: cria check-model ${quoteWord(path)}`,
    });
  const result = await standBy(config, report, (led) =>
    train({ config: led, configFolder: folder, bus, signal, report }),
  );
  if (json) console.log(JSON.stringify(describeTraining(result)));
  else if (config.trainer.val_only) printValidation(result.metrics);
  else await printTraining(result, { config: words, dumped });
}

/**
 * Trains by a config. A training that lost the lead of its bus, because the bus was unreachable too long or another
 * process took it, stands by and goes on from the newest checkpoint.
 */
async function standBy(
  config: TrainConfig,
  report: Report,
  trainBy: (config: TrainConfig) => PromiseLike<TrainResult>,
): Promise<TrainResult> {
  const resumed: TrainConfig = { ...config, trainer: { ...config.trainer, resume_mode: "auto" } };
  for (let given = config; ; given = resumed) {
    try {
      return await trainBy(given);
    } catch (error) {
      if (!isLeadLost(error)) throw error;
      report({ type: "warning", text: `the lead of the bus is lost, for now\n  ${(error as Error).message}` });
    }
  }
}

/**
 * True if the lead was lost. Before the first step the error is thrown unchanged, afterwards together with the saved
 * state.
 */
const isLeadLost = (error: unknown): boolean => {
  const { code } = (error instanceof TrainingInterrupted ? error.cause : error) as { code?: string };
  return code === "cluster/lease-lost";
};
