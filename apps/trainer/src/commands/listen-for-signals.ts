import { setMaxListeners } from "node:events";
import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** npm passes a Ctrl-C on to a process that the terminal has told already: within this time it is the same one. */
const SAME_SIGNAL_MS = 300;

/** Why a command was aborted. */
export class Interrupted extends Error {
  /** 128 + the signal's number, as shells have it. */
  readonly exitCode: number;

  constructor(name: NodeJS.Signals) {
    super(`interrupted by ${name}`);
    this.name = "Interrupted";
    this.exitCode = 128 + constants.signals[name];
  }
}

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP; a second one ends the process as if nobody had listened.
 * @returns the signal to work under, and what ends the listening.
 */
export function listenForSignals(): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController();
  // Every running conversation listens.
  setMaxListeners(0, controller.signal);
  let first = { name: "", at: 0 };
  const hear = (name: NodeJS.Signals) => {
    const at = performance.now();
    if (controller.signal.aborted) {
      if (name === first.name && at - first.at < SAME_SIGNAL_MS) return;
      stop();
      process.kill(process.pid, name);
      return;
    }
    first = { name, at };
    // A terminal that was closed takes no more text.
    if (name === "SIGHUP") for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
    process.stderr.write(`\n${name}: ending what runs, saving what is done (once more to end at once)\n`);
    controller.abort(new Interrupted(name));
  };
  const listeners = SIGNALS.map((name) => ({ name, listener: () => hear(name) }));
  const stop = () => {
    for (const { name, listener } of listeners) process.removeListener(name, listener);
  };
  for (const { name, listener } of listeners) process.on(name, listener);
  return { signal: controller.signal, stop };
}
