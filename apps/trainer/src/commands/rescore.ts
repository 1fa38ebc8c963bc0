import { ConfigError } from "@cria/core";
import type { Tracker } from "@cria/trainer";
import {
  type ChangedJudgement,
  checkArgument,
  makeTrackers,
  type RescoreCounts,
  type RescoreResult,
  rescoreRun,
} from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { formatSeconds } from "../terminal/progress.js";
import { showEvents } from "../terminal/show-events.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  run: { type: "positional", description: "A run folder of cria train", required: true },
  overrides: {
    type: "positional",
    description: "Any number of keys of reward_model and custom_reward_function: reward_model.enable=false",
    required: false,
  },
  reward: { type: "string", description: "Another reward function: ./reward.ts#score" },
  config: {
    type: "string",
    description: "YAML whose sections reward_model and custom_reward_function replace the run's",
  },
  out: { type: "string", description: "The new run folder (default: <run>-rescored)" },
  logger: {
    type: "string",
    description: "Trackers that get the metrics: tensorboard, mlflow, wandb; separated by commas",
  },
  ...commonArgs,
} as const;

/** Text below the options in the help. */
export const rescoreNotes = `EXAMPLES

  cria rescore runs/p/e --reward ./strict.ts#score               another function; the other rewards stay
  cria rescore runs/p/e --reward ./r.ts reward_model.enable=false   without the run's reward models
  cria rescore runs/p/e --config judge.yaml --out runs/p/judged  another reward_model, a judge for example
  cria show runs/p/e-rescored --filter 'score < score_before'    conversations with a lower score

The run stays unchanged. The new one has its conversations with the new rewards (the old ones are in "before"; advantages are null,
because no training used these rewards), metrics.jsonl, config.json, and rescore.json, the result.
A reward function gets the same arguments as in training: score(dataSource, solutionText, groundTruth, extraInfo, kwargs). If it
throws, the conversation has no reward; if it throws for all of the first file, the command ends, and writes nothing.`;

export const rescoreCommand = defineCommand({
  meta: { name: "rescore", description: "Judge the conversations of a run again, with another reward" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const run = checkArgument("<run>", String(given.run));
      const result = await rescoreRun(run, {
        reward: given.reward,
        config: given.config === undefined ? undefined : checkArgument("--config", given.config),
        overrides: given._.slice(1).map(String),
        out: given.out,
        trackers: readTrackers(given.logger),
        report: showEvents({ silent: given.json }),
        signal,
      });
      if (given.json) console.log(JSON.stringify(result));
      else print(result);
    }),
});

/** @throws ConfigError for an unknown name, or a tracker without address or key. */
function readTrackers(names = ""): Tracker[] {
  const known = ["tensorboard", "mlflow", "wandb"] as const;
  const logger = names.split(",").flatMap((name) => {
    if (name.trim() === "") return [];
    const tracker = known.find((each) => each === name.trim());
    if (tracker !== undefined) return [tracker];
    throw new ConfigError("is not a tracker", {
      code: "config/bad-argument",
      subject: "--logger",
      expected: known.join(", "),
      received: name,
    });
  });
  return makeTrackers({ trainer: { logger, project_name: "", experiment_name: "" } });
}

function print({ path, rollouts, validation, mostChanged, seconds }: RescoreResult): void {
  for (const [name, counts] of Object.entries({ training: rollouts, validation }))
    if (counts.conversations > 0) for (const line of describeCounts(name, counts)) console.log(line);
  if (mostChanged.length > 0) console.log(`${pc.bold("changed most")}`);
  for (const changed of mostChanged) console.log(`  ${describeChanged(changed)}`);
  console.log(`${formatSeconds(seconds)}; the new run: ${path}`);
  console.log(`  next         cria show ${path} --step all --filter 'score != score_before'`);
}

function describeCounts(name: string, counts: RescoreCounts): string[] {
  const { conversations, skipped, failed, changed, flipped, before, after } = counts;
  const left = [
    ...(skipped > 0 ? [`${skipped} had failed before and were not judged`] : []),
    ...(failed > 0 ? [pc.red(`the judge failed at ${failed}`)] : []),
  ];
  const means = (["score", "reward", "success"] as const).map(
    (key) => `  ${key.padEnd(12)} mean ${format(before[key])} -> ${pc.bold(format(after[key]))}`,
  );
  return [
    `${pc.bold(`${conversations} conversations of the ${name}`)}: ${changed} have another score, ${flipped} another success`,
    ...means,
    ...left.map((text) => `  ${"left out".padEnd(12)} ${text}`),
  ];
}

function describeChanged({ file, uid, sample, before, after, error }: ChangedJudgement): string {
  const why = error === null ? "" : `: ${makePrintableLine(error)}`;
  return `${format(before)} -> ${format(after)}  ${makePrintableLine(uid)}, sample ${sample} (${file})${why}`;
}

function format(value: number | null): string {
  return value === null ? "none" : value.toFixed(3);
}
