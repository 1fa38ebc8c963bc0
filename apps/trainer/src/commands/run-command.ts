import { CriaError } from "@cria/core";
import { TrainingInterrupted } from "@cria/trainer";
import { colors as pc } from "../terminal/colors.js";
import { quoteWord } from "../terminal/quote-word.js";
import { provideCria } from "../user-code/provide-cria.js";
import { isUsageError } from "./check-command-line.js";
import { guardProcess } from "./guard-process.js";
import { Interrupted, type ListenOptions, listenForSignals } from "./listen-for-signals.js";

/** Options that every command has. */
export const commonArgs = {
  json: { type: "boolean", description: "Print only the result on stdout, as JSON" },
  verbose: { type: "boolean", description: "Show the stacks of errors" },
} as const;

export interface ParsedArgs {
  _: (string | number)[];
  verbose?: boolean;
}

/**
 * Runs a command's work: a signal aborts it, errors are printed for people, and scripts get an exit code: 0 done, 1
 * failed, 2 wrong usage, 128 + the signal's number interrupted. A second signal ends the process at once, or with
 * `drains` aborts the work's second signal. A stray error of the user's code aborts the work like a signal, and counts
 * as a failure.
 */
export async function runCommand(
  args: ParsedArgs,
  work: (signal: AbortSignal, again: AbortSignal) => Promise<void>,
  options: ListenOptions = {},
): Promise<void> {
  const interruption = listenForSignals(options);
  const { signal } = interruption;
  let stray: unknown;
  const print = (error: unknown) => process.stderr.write(`\n${pc.red("error")} ${describe(error, args.verbose)}\n`);
  const guard = guardProcess((error) => {
    // The first one ends the work; each is reported.
    stray ??= error;
    print(error);
    interruption.interrupt(error);
  }, describeResume);
  try {
    await provideCria();
    await work(signal, interruption.again);
  } catch (error) {
    if (error instanceof TrainingInterrupted)
      process.stderr.write(`\n${error.message}\n  go on: ${describeResume()}\n`);
    else if (!signal.aborted || args.verbose) print(error);
    process.exitCode = signal.reason instanceof Interrupted ? signal.reason.exitCode : isUsageError(error) ? 2 : 1;
  } finally {
    if (stray !== undefined) process.exitCode = 1;
    interruption.stop();
    guard.stop();
  }
}

/** The command line as one types it. `resume_mode=disable` would start a new run. */
function describeResume(): string {
  const words = process.argv.slice(2).filter((word) => !word.startsWith("trainer.resume_mode="));
  const mode = words.length < process.argv.length - 2 ? ["trainer.resume_mode=auto"] : [];
  return ["cria", ...words, ...mode].map(quoteWord).join(" ");
}

/** Cria's errors explain themselves; for others the stack is the only explanation. */
function describe(error: unknown, verbose: boolean | undefined): string {
  if (error instanceof CriaError && !verbose) return error.message;
  return (error as Error)?.stack ?? String(error);
}
