import { ConfigError } from "@cria/core";
import { defineCommand } from "citty";
import { runDemo } from "../demo/run-demo.js";
import { runCommand } from "./run-command.js";

export const demoCommand = defineCommand({
  meta: {
    name: "demo",
    description: "Train the embedded policy to use a calculator, and see its held-out success rise",
  },
  args: {
    seed: { type: "string", description: "Seed of data order, sampling and adapter", default: "1" },
    steps: { type: "string", description: "Training steps (default: the config's)" },
    json: { type: "boolean", description: "Print the summary as JSON, and nothing else" },
    verbose: { type: "boolean", description: "Show stacks of errors" },
  },
  run: ({ args }) =>
    runCommand(args, async (signal) => {
      const summary = await runDemo({
        seed: parseCount("--seed", args.seed, 0),
        steps: args.steps === undefined ? null : parseCount("--steps", args.steps, 1),
        cwd: process.cwd(),
        silent: args.json === true,
        signal,
      });
      if (args.json) console.log(JSON.stringify(summary));
    }),
});

function parseCount(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least) return value;
  throw new ConfigError("has a wrong value", {
    code: "config/bad-argument",
    subject: name,
    expected: `a whole number of at least ${least}`,
    received: text,
  });
}
