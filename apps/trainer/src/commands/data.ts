import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "@cria/core";
import { isAddress } from "@cria/hub/internal";
import { convertGsm8k, type Gsm8kShape } from "@cria/rollout";
import { gsm8kShapes } from "@cria/rollout/internal";
import { checkArgument, type FetchAddressesOptions, fetchData } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { showEvents } from "../terminal/show-events.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  source: {
    type: "string",
    description: "Folder with GSM8K's train.jsonl and test.jsonl, or an address of a hub",
    default: "hf:openai/gsm8k/main",
  },
  out: { type: "string", description: "Folder for train.parquet and test.parquet", required: true },
  shape: {
    type: "string",
    description: "tool: checks answers with a tool; interaction: a user gives feedback",
    default: "tool",
  },
  ...commonArgs,
} as const;

export const gsm8kCommand = defineCommand({
  meta: { name: "gsm8k", description: "Write GSM8K as Parquet, in the common format of RL trainers" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const shape = parseShape(given.shape);
      const source = await findSource(given.source, { report: showEvents({ silent: given.json }), signal });
      const files = Object.values(await convertGsm8k(source, given.out, shape));
      const sizes = await Promise.all(files.map(async ({ file }) => (await stat(file)).size));
      if (given.json) console.log(JSON.stringify(files.map((entry, i) => ({ ...entry, bytes: sizes[i] }))));
      else {
        for (const [i, { file, rows }] of files.entries())
          console.log(`${file}: ${rows} rows, ${(sizes[i]! / 1e6).toFixed(2)} MB`);
        const file = join(given.out, "train.parquet");
        console.log(`next: data.train_files=${file} in your config (docs/own-model.md, "Models of a hub")`);
      }
    }),
});

/** A folder as typed; for an address the files of its two splits. */
async function findSource(source: string, options: FetchAddressesOptions) {
  if (!isAddress(source)) return checkArgument("--source", source);
  const [set, revision] = source.split("@");
  const fetch = (split: string) => fetchData(`${set}/${split}${revision ? `@${revision}` : ""}`, options);
  return { train: await fetch("train"), test: await fetch("test") };
}

function parseShape(text: string): Gsm8kShape {
  const shape = gsm8kShapes.find((name) => name === text);
  if (shape) return shape;
  throw new ConfigError("has a wrong value", {
    code: "config/bad-argument",
    subject: "--shape",
    expected: gsm8kShapes.join(" or "),
    received: text,
  });
}

export const dataCommand = defineCommand({
  meta: { name: "data", description: "Make datasets" },
  subCommands: { gsm8k: gsm8kCommand },
});
