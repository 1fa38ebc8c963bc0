import { setMaxListeners } from "node:events";
import { CriaError } from "@cria/core";
import pc from "picocolors";

/** Runs a command's work: Ctrl-C aborts it, errors are printed for people, and the exit code tells scripts. */
export async function runCommand(
  args: { verbose?: boolean },
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  // Every running conversation listens.
  setMaxListeners(0, controller.signal);
  const interrupt = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt);
  try {
    await work(controller.signal);
  } catch (error) {
    const known = error instanceof CriaError;
    const interrupted = controller.signal.aborted;
    const text = interrupted
      ? "interrupted"
      : args.verbose || !known
        ? ((error as Error)?.stack ?? String(error))
        : error.message;
    process.stderr.write(`\n${pc.red("error")} ${text}\n`);
    process.exitCode = interrupted ? 130 : 1;
  } finally {
    process.removeListener("SIGINT", interrupt);
  }
}
