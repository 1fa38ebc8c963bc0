import { defineCommand } from "citty";
import { checkRun } from "../checkpoints/open-run.js";
import { checkTrainPaths } from "../config/check-train-paths.js";
import { loadConfig } from "../config/load-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import { listTrainWarnings } from "../doctor/examine-config.js";
import { fetchTrainAddresses } from "../hub/fetch-addresses.js";
import { describeProblem } from "../terminal/describe-problem.js";
import { describeTraining, printTraining } from "../terminal/print-training.js";
import { findWidth } from "../terminal/wrap-text.js";
import { makeTrackers } from "../trackers/open-trackers.js";
import { findOverlongPrompts } from "../train/find-overlong-prompts.js";
import { openSession } from "../train/session.js";
import { trainSession } from "../train/train-session.js";
import { printValidation } from "../validation/print-validation.js";
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
      const loaded = loadConfig(trainConfigSchema, given.config, given._.slice(1).map(String));
      const { values: config, folder } = loaded;
      checkTrainPaths(loaded);
      const trackers = makeTrackers(config);
      const silent = given.json === true || !config.trainer.logger.includes("console");
      await fetchTrainAddresses(config, { silent, signal });
      for (const { name, key, found, remedy } of await listTrainWarnings(config, folder))
        process.stderr.write(`warning: ${key ?? name}: ${found}; ${remedy}\n`);
      if (!config.trainer.val_only) await checkRun(config);
      const { logger, rollout_data_dir } = config.trainer;
      const dumped = logger.includes("file") || rollout_data_dir !== null;
      const session = await openSession(config, folder, { signal, silent });
      try {
        const overlong = await findOverlongPrompts(session, folder, silent);
        if (overlong !== null) process.stderr.write(`warning: ${overlong}\n`);
        const summary = await trainSession(session, {
          configFolder: folder,
          silent,
          // Also with --json: stdout stays clean, and what happens to an earlier run must not go unseen.
          say: (text) => process.stderr.write(`${text}\n`),
          onProblem: (problem, path) =>
            process.stderr.write(`${describeProblem(problem, dumped ? path : null, findWidth(process.stderr))}\n`),
          trackers,
        });
        if (given.json) console.log(JSON.stringify(describeTraining(summary)));
        else if (config.trainer.val_only) printValidation(summary.metrics);
        else
          printTraining(summary, {
            config: given._.map(String),
            lora: session.engine.info.trainable === "lora",
            dumped,
            heldOut: session.valRows.length > 0,
          });
      } finally {
        await session.dispose();
      }
    }),
});
