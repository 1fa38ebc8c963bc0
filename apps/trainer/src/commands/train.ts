import { trainConfigSchema } from "@cria/trainer";
import { checkTrainPaths } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { busArgs, openBusAs, readBusArgs } from "../cluster/bus-args.js";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";
import { trainByCommand } from "./train-by-command.js";

const args = {
  config: { type: "positional", description: "YAML config; `cria init` writes one", required: true },
  overrides: {
    type: "positional",
    description:
      "Any number of key.path=value, for example trainer.total_training_steps=10; paths start at the working directory",
    required: false,
  },
  ...busArgs,
  ...commonArgs,
} as const;

export const trainCommand = defineCommand({
  meta: { name: "train", description: "Reinforcement learning: rollouts, rewards, updates, validation" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const words = given._.map(String);
      const address = readBusArgs(given);
      const loaded = readConfig(trainConfigSchema, given.config, words.slice(1));
      checkTrainPaths(loaded);
      const silenceMs = 1000 * loaded.values.cluster.silence_s;
      const times = { ackWaitMs: silenceMs, presenceMs: silenceMs, leaseMs: silenceMs };
      const bus = address && (await openBusAs("coordinator", address, { times }));
      try {
        await trainByCommand(loaded, { json: given.json, signal, words, bus });
      } finally {
        await bus?.close();
      }
    }),
});
