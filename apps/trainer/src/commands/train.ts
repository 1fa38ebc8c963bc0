import { checkTrainPaths, fetchTrainAddresses, train, trainConfigSchema } from "@cria/trainer";
import { defineCommand } from "citty";
import { listTrainWarnings } from "../doctor/examine-config.js";
import { describeTraining, printTraining } from "../terminal/print-training.js";
import { printValidation } from "../terminal/print-validation.js";
import { showEvents } from "../terminal/show-events.js";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config; `cria init` writes one", required: true },
  overrides: {
    type: "positional",
    description:
      "Any number of key.path=value, for example trainer.total_training_steps=10; paths start at the working directory",
    required: false,
  },
  ...commonArgs,
} as const;

export const trainCommand = defineCommand({
  meta: { name: "train", description: "Reinforcement learning: rollouts, rewards, updates, validation" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const loaded = readConfig(trainConfigSchema, given.config, given._.slice(1).map(String));
      const { values: config, folder } = loaded;
      checkTrainPaths(loaded);
      const { logger, rollout_data_dir } = config.trainer;
      const dumped = logger.includes("file") || rollout_data_dir !== null;
      const report = showEvents({ silent: given.json || !logger.includes("console"), dumped });
      await fetchTrainAddresses(config, { report, signal });
      for (const { name, key, found, remedy } of await listTrainWarnings(config, folder))
        report({ type: "warning", text: `${key ?? name}: ${found}; ${remedy}` });
      const result = await train({ config, configFolder: folder, signal, report });
      if (given.json) console.log(JSON.stringify(describeTraining(result)));
      else if (config.trainer.val_only) printValidation(result.metrics);
      else printTraining(result, { config: given._.map(String), dumped });
    }),
});
