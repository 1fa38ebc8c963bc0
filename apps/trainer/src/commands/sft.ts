import { defineCommand } from "citty";
import { loadConfig } from "../config/load-config.js";
import { sftConfigSchema } from "../config/sft-config.js";
import { runSft } from "../sft/run-sft.js";
import { formatCount, formatSeconds } from "../terminal/progress.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config; see models/sft-1.yaml", required: true },
  overrides: {
    type: "positional",
    description: "Any number of key.path=value, for example optim.lr=1e-4",
    required: false,
  },
  ...commonArgs,
} as const;

export const sftCommand = defineCommand({
  meta: { name: "sft", description: "Supervised fine-tuning on conversations, of all weights or of a LoRA adapter" },
  args,
  run: ({ args: given }) =>
    runCommand(given, Object.keys(args), async (signal) => {
      const { values, folder } = loadConfig(sftConfigSchema, given.config, given._.slice(1).map(String));
      const result = await runSft(values, folder, { silent: given.json, signal });
      if (given.json) console.log(JSON.stringify(result));
      else
        console.log(
          `${result.output}: ${result.steps} steps, loss ${result.loss.toFixed(4)}, ${formatSeconds(result.seconds)}, ${formatCount(result.tokensPerSecond)} tok/s`,
        );
    }),
});
