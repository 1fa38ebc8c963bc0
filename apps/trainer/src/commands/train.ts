import {
  checkRun,
  checkTrainPaths,
  fetchTrainAddresses,
  findOverlongPrompts,
  makeTrackers,
  openSession,
  trainConfigSchema,
  trainSession,
} from "@cria/trainer";
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
      const trackers = makeTrackers(config);
      const { logger, rollout_data_dir } = config.trainer;
      const dumped = logger.includes("file") || rollout_data_dir !== null;
      const report = showEvents({ silent: given.json || !logger.includes("console"), dumped });
      await fetchTrainAddresses(config, { report, signal });
      for (const { name, key, found, remedy } of await listTrainWarnings(config, folder))
        report({ type: "warning", text: `${key ?? name}: ${found}; ${remedy}` });
      if (!config.trainer.val_only) await checkRun(config);
      const session = await openSession(config, folder, { signal, report });
      try {
        const overlong = await findOverlongPrompts(session, folder, report);
        if (overlong !== null) report({ type: "warning", text: overlong });
        const summary = await trainSession(session, {
          configFolder: folder,
          report,
          trackers,
        });
        if (given.json) console.log(JSON.stringify(describeTraining(summary)));
        else if (config.trainer.val_only) printValidation(summary.metrics);
        else
          printTraining(summary, {
            config: given._.map(String),
            lora: session.policy.engine.info.trainable === "lora",
            dumped,
            heldOut: session.valRows.length > 0,
          });
      } finally {
        await session.dispose();
      }
    }),
});
