import { ConfigError } from "@cria/core";
import { defineCommand } from "citty";
import { runDemo } from "../demo/run-demo.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  seed: { type: "string", description: "Seed of data order, sampling and adapter", default: "1" },
  steps: { type: "string", description: "Training steps (default: the config's)" },
  overrides: {
    type: "positional",
    description: "Any number of key.path=value for its config; the keys: cria config",
    required: false,
  },
  ...commonArgs,
} as const;

export const demoCommand = defineCommand({
  meta: {
    name: "demo",
    description: "Train the embedded policy to use a calculator, and see its held-out success rise",
  },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const summary = await runDemo({
        seed: parseCount("--seed", given.seed, 0),
        steps: given.steps === undefined ? null : parseCount("--steps", given.steps, 1),
        overrides: given._.map(String),
        cwd: process.cwd(),
        silent: given.json === true,
        signal,
      });
      if (given.json) console.log(JSON.stringify(summary));
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
