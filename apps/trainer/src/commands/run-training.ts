import { fetchTrainAddresses, type LoadedConfig, type TrainConfig, train } from "@cria/trainer";
import { listTrainWarnings } from "../doctor/examine-config.js";
import { describeTraining, printTraining } from "../terminal/print-training.js";
import { printValidation } from "../terminal/print-validation.js";
import { showEvents } from "../terminal/show-events.js";

export interface RunTrainingOptions {
  json?: boolean;
  signal: AbortSignal;
  /** The config's file and its overrides, as they were typed; null: there is no such file. */
  words: readonly string[] | null;
}

/** Trains by a config, and tells people or machines how it goes. */
export async function runTraining(
  { values: config, folder }: Pick<LoadedConfig<TrainConfig>, "values" | "folder">,
  { json = false, signal, words }: RunTrainingOptions,
): Promise<void> {
  const { logger, rollout_data_dir } = config.trainer;
  const dumped = logger.includes("file") || rollout_data_dir !== null;
  const report = showEvents({ silent: json || !logger.includes("console"), dumped });
  await fetchTrainAddresses(config, { report, signal });
  for (const { name, key, found, remedy } of await listTrainWarnings(config, folder))
    report({ type: "warning", text: `${key ?? name}: ${found}; ${remedy}` });
  const result = await train({ config, configFolder: folder, signal, report });
  if (json) console.log(JSON.stringify(describeTraining(result)));
  else if (config.trainer.val_only) printValidation(result.metrics);
  else await printTraining(result, { config: words, dumped });
}
