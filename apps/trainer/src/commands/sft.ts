import { defineCommand } from "citty";
import { loadConfig } from "../config/load-config.js";
import { sftConfigSchema } from "../config/sft-config.js";
import { runSft } from "../sft/run-sft.js";
import { formatCount, formatSeconds } from "../terminal/progress.js";
import { runCommand } from "./run-command.js";

export const sftCommand = defineCommand({
  meta: {
    name: "sft",
    description: "Supervised fine-tuning on conversations (full or LoRA): cria sft config.yaml [key=value ...]",
  },
  args: {
    config: { type: "positional", description: "YAML config", required: true },
    json: { type: "boolean", description: "Print the result as JSON" },
    verbose: { type: "boolean", description: "Show stacks of errors" },
  },
  run: ({ args }) =>
    runCommand(args, async (signal) => {
      const { values, folder } = loadConfig(sftConfigSchema, args.config, args._.slice(1).map(String));
      const result = await runSft(values, folder, { silent: args.json, signal });
      if (args.json) console.log(JSON.stringify(result));
      else
        console.log(
          `${result.output}: ${result.steps} steps, loss ${result.loss.toFixed(4)}, ${formatSeconds(result.seconds)}, ${formatCount(result.tokensPerSecond)} tok/s`,
        );
    }),
});
