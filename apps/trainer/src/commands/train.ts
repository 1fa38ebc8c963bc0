import { checkTrainPaths, trainConfigSchema } from "@cria/trainer";
import { defineCommand } from "citty";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";
import { runTraining } from "./run-training.js";

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
      const words = given._.map(String);
      const loaded = readConfig(trainConfigSchema, given.config, words.slice(1));
      checkTrainPaths(loaded);
      await runTraining(loaded, { json: given.json, signal, words });
    }),
});
