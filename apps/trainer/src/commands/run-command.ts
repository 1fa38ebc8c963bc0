import { setMaxListeners } from "node:events";
import { ConfigError, CriaError } from "@cria/core";
import { findNearest } from "../config/find-nearest.js";
import { colors as pc } from "../terminal/colors.js";

/** Options that every command has. */
export const commonArgs = {
  json: { type: "boolean", description: "Print the result as JSON on stdout, and nothing else" },
  verbose: { type: "boolean", description: "Show the stacks of errors" },
} as const;

export interface ParsedArgs {
  _: (string | number)[];
  verbose?: boolean;
}

/**
 * Runs a command's work: Ctrl-C aborts it, errors are printed for people, and the exit code tells scripts: 0 done,
 * 1 failed, 130 interrupted. A second Ctrl-C ends the process at once.
 * @param known names of the command's options; any other is an error.
 */
export async function runCommand(
  args: ParsedArgs,
  known: readonly string[],
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  // Every running conversation listens.
  setMaxListeners(0, controller.signal);
  const interrupt = () => {
    process.stderr.write("\ninterrupted: ending what runs (once more to end at once)\n");
    controller.abort(new Error("interrupted"));
  };
  process.once("SIGINT", interrupt);
  try {
    checkOptions(args, known);
    await work(controller.signal);
  } catch (error) {
    const interrupted = controller.signal.aborted;
    if (!interrupted || args.verbose) process.stderr.write(`\n${pc.red("error")} ${describe(error, args.verbose)}\n`);
    process.exitCode = interrupted ? 130 : 1;
  } finally {
    process.removeListener("SIGINT", interrupt);
  }
}

/** Errors made on purpose explain themselves; of others the stack is all there is. */
function describe(error: unknown, verbose: boolean | undefined): string {
  if (error instanceof CriaError && !verbose) return error.message;
  return (error as Error)?.stack ?? String(error);
}

function checkOptions(args: ParsedArgs, known: readonly string[]): void {
  for (const key of Object.keys(args)) {
    if (key === "_" || known.includes(key)) continue;
    const nearest = findNearest(key, known);
    throw new ConfigError("is not an option of this command", {
      code: "config/unknown-option",
      subject: `--${key}`,
      expected: nearest ? `perhaps --${nearest}` : known.map((name) => `--${name}`).join(", "),
      remedy: "see --help; keys of the config are given as key.path=value, without dashes",
    });
  }
}
