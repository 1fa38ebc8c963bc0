import { defineCommand } from "citty";
import { listWarnings } from "../config/list-warnings.js";
import { loadConfig } from "../config/load-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import { makeTrackers } from "../trackers/open-trackers.js";
import { openSession } from "../train/session.js";
import { trainSession } from "../train/train-session.js";
import { printValidation } from "../validation/print-validation.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config; see examples/calculator/config.yaml", required: true },
  overrides: {
    type: "positional",
    description: "Any number of key.path=value, for example trainer.total_training_steps=10",
    required: false,
  },
  ...commonArgs,
} as const;

export const trainCommand = defineCommand({
  meta: { name: "train", description: "Reinforcement learning: rollouts, rewards, updates, validation" },
  args,
  run: ({ args: given }) =>
    runCommand(given, Object.keys(args), async (signal) => {
      const { values: config, folder } = loadConfig(trainConfigSchema, given.config, given._.slice(1).map(String));
      for (const { key, found, remedy } of listWarnings(config))
        process.stderr.write(`warning: ${key}: ${found}; ${remedy}\n`);
      const trackers = makeTrackers(config);
      const silent = given.json === true || !config.trainer.logger.includes("console");
      const session = await openSession(config, folder, { signal, silent });
      try {
        const { path, metrics } = await trainSession(session, {
          configFolder: folder,
          silent,
          // Also with --json: stdout stays clean, and what happens to an earlier run must not go unseen.
          say: (text) => process.stderr.write(`${text}\n`),
          trackers,
        });
        if (given.json) console.log(JSON.stringify(metrics));
        else if (config.trainer.val_only) printValidation(metrics);
        else console.log(`run folder: ${path}`);
      } finally {
        await session.dispose();
      }
    }),
});
