import { join } from "node:path";
import type { TrainResult } from "@cria/trainer";
import { drawBar, drawSparkline } from "../demo/draw-chart.js";
import { readRun } from "../runs/run-reader.js";
import { findWorstFailure, type WorstFailure } from "../show/find-worst-failure.js";
import { colors as pc } from "./colors.js";
import { describeProblem } from "./describe-problem.js";
import { quoteWord } from "./quote-word.js";
import { findWidth, wrapParagraph } from "./wrap-text.js";

export interface PrintTrainingOptions {
  /** The config's file and its overrides, as typed; null: there is no such file. */
  config: readonly string[] | null;
  /** True if its conversations are in files. */
  dumped: boolean;
}

/** The output of `cria train --json`. */
export function describeTraining({ folder, metrics, progress, problems }: TrainResult): object {
  return {
    run_folder: folder,
    measured: progress?.measured ?? null,
    before: progress?.before ?? null,
    after: progress?.after ?? null,
    problems,
    metrics,
  };
}

/**
 * The end of a training: places of files, success before and after, its curve, problems, the worst conversation, the
 * next commands.
 */
export async function printTraining(result: TrainResult, { config, dumped }: PrintTrainingOptions): Promise<void> {
  const { folder: path, progress, problems, adapter, adapters, model, heldOutRows, metrics } = result;
  console.log(`run folder: ${path}`);
  if (progress) {
    const { measured, before, after } = progress;
    const colour = after.success > before.success ? pc.green : pc.yellow;
    const name = measured === "held_out" ? "held-out success" : "success in training";
    const change = `${before.success.toFixed(3)} at step ${before.step} → ${after.success.toFixed(3)} at step ${after.step}`;
    console.log(`${pc.bold(name)}: ${colour(change)}`);
    if (process.stdout.isTTY) for (const line of drawEnds(before.success, after.success)) console.log(line);
  }
  const summary = dumped ? await readRun(path) : null;
  if (summary && summary.curve.length > 1) console.log(`${pc.bold("in training")}: ${drawSparkline(summary.curve)}`);
  const [gravest, ...others] = problems;
  if (gravest) console.log(describeProblem(gravest, dumped ? path : null, findWidth()));
  if (others.length > 0 && dumped) console.log(pc.dim(`${others.length} more: cria coach ${quoteWord(path)}`));
  const step = metrics["training/global_step"] ?? null;
  const worst = dumped && step !== null ? await findWorstFailure(path, step) : null;
  if (worst) for (const line of drawWorst(worst)) console.log(line);
  const weights = adapters ? Object.values(adapters).join(", ") : (adapter ?? model);
  const role = adapters ? ["--role", Object.keys(adapters)[0]!] : [];
  const place = worst ? ["--step", `${worst.step}`] : [];
  const next: [string[], string][] = [
    ...(dumped
      ? [
          view(path),
          [["show", path, ...place, "--worst", "3"], "conversations of the last step, the worst first"] as Next,
        ]
      : []),
    ...(worst
      ? [[["replay", path, ...place, "--trajectory", `${worst.index}`], "replay the worst one, token by token"] as Next]
      : []),
    [["chat", path, ...role], "chat with it"],
    ...(config && heldOutRows > 0
      ? // Overrides that only trainings read would hide the command.
        [
          [
            ["eval", ...config.filter((word) => !word.startsWith("trainer.")), "--checkpoint", path],
            "held-out success",
          ] as Next,
        ]
      : []),
    [
      ["export", "--run", path, ...role, "--merged", join(path, "merged.gguf")],
      `the whole model; trained weights: ${weights}`,
    ],
  ];
  console.log(pc.bold("next"));
  for (const [words, what] of next)
    console.log(`  ${["cria", ...words.map(quoteWord)].join(" ")}\n    ${pc.dim(what)}`);
}

type Next = [string[], string];

const view = (path: string): Next => [
  ["view", path],
  "all of it in the browser: curves, groups, conversations, tokens",
];

/** Lines of its last words that are shown. */
const WORST_LINES = 2;

/** Its name and end, and below that its last words, shortened if long. */
function drawWorst({ who, said }: WorstFailure): string[] {
  const width = findWidth();
  const words = wrapParagraph(said === "" ? "it said nothing" : said, width - 4);
  const shown = words.slice(0, WORST_LINES);
  if (words.length > shown.length) shown[WORST_LINES - 1] = `${shown[WORST_LINES - 1]!.slice(0, width - 6)} …`;
  return [
    ...wrapParagraph(`${pc.bold("worst of the last step")}: ${who}`, width),
    ...shown.map((line) => `  ${pc.dim(line)}`),
  ];
}

/** Two bars: before and after. */
function drawEnds(before: number, after: number): string[] {
  return [
    `  before ${pc.red(drawBar(before))} ${before.toFixed(3)}`,
    `  after  ${pc.green(drawBar(after))} ${after.toFixed(3)}`,
  ];
}
