import { join } from "node:path";
import type { TrainSummary } from "@cria/trainer";
import { colors as pc } from "./colors.js";
import { describeProblem } from "./describe-problem.js";
import { quoteWord } from "./quote-word.js";
import { findWidth } from "./wrap-text.js";

export interface PrintTrainingOptions {
  /** The config's file and its overrides, as they were typed. */
  config: readonly string[];
  /** Whether an adapter was trained, or the whole model. */
  lora: boolean;
  /** Whether its conversations are in files. */
  dumped: boolean;
  /** Whether there are held-out rows. */
  heldOut: boolean;
}

/** What `cria train --json` prints. */
export function describeTraining({ path, metrics, progress, problems }: TrainSummary): object {
  return {
    run_folder: path,
    measured: progress?.measured ?? null,
    before: progress?.before ?? null,
    after: progress?.after ?? null,
    problems,
    metrics,
  };
}

/** The end of a training: where everything is, before and after, why it did not learn if it did not, what to do next. */
export function printTraining(
  { path, progress, problems }: TrainSummary,
  { config, lora, dumped, heldOut }: PrintTrainingOptions,
): void {
  console.log(`run folder: ${path}`);
  if (progress) {
    const { measured, before, after } = progress;
    const colour = after.success > before.success ? pc.green : pc.yellow;
    const name = measured === "held_out" ? "held-out success" : "success in training";
    const change = `${before.success.toFixed(3)} at step ${before.step} → ${after.success.toFixed(3)} at step ${after.step}`;
    console.log(`${pc.bold(name)}: ${colour(change)}`);
  }
  if (problems[0]) console.log(describeProblem(problems[0], dumped ? path : null, findWidth()));
  // What only trainings look at would hide the command.
  const evaluated = config.filter((word) => !word.startsWith("trainer."));
  const weights = join(path, lora ? "adapter.gguf" : "model.gguf");
  const show: [string[], string] = [["show", path, "--worst", "3"], "conversations of the last step, the worst first"];
  const evaluate: [string[], string] = [["eval", ...evaluated, "--checkpoint", path], "held-out success"];
  const next: [string[], string][] = [
    ...(dumped ? [show] : []),
    [["chat", path], "talk to it"],
    ...(heldOut ? [evaluate] : []),
    [["export", "--run", path, "--merged", join(path, "merged.gguf")], `the whole model; trained weights: ${weights}`],
  ];
  console.log(pc.bold("next"));
  for (const [words, what] of next)
    console.log(`  ${["cria", ...words.map(quoteWord)].join(" ")}\n    ${pc.dim(what)}`);
}
