import { setMaxListeners } from "node:events";
import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** npm forwards a Ctrl-C to a process that the terminal has already signalled: within this time both count as one. */
const SAME_SIGNAL_MS = 300;

/** Reason of an aborted command. SIGPIPE: the reader of its output is gone. */
export class Interrupted extends Error {
  /** 128 + the signal's number, as shells have it. */
  readonly exitCode: number;

  constructor(name: NodeJS.Signals, cause?: unknown) {
    super(`interrupted by ${name}`, cause === undefined ? undefined : { cause });
    this.name = "Interrupted";
    this.exitCode = 128 + constants.signals[name];
  }
}

export interface ListenOptions {
  /** True: the first signal lets running work end, and a second one aborts it; default false. */
  drains?: boolean;
}

/** Output without a reader needs no further errors: an uncaught one would be reported, and fail again, for ever. */
const ignore = () => undefined;

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP; a second one ends the process like an unhandled signal. With `drains`
 * the second aborts `again`, and a third one ends the process. Output that cannot be written (`cria train | head`, a
 * closed terminal) aborts like a signal, with SIGPIPE.
 * @returns the signals to work under, a function that aborts the first one for another reason, and one that stops
 * listening.
 */
export function listenForSignals({ drains = false }: ListenOptions = {}): {
  signal: AbortSignal;
  again: AbortSignal;
  interrupt: (reason: unknown) => void;
  stop: () => void;
} {
  const controller = new AbortController();
  const again = new AbortController();
  // Every running conversation adds a listener.
  setMaxListeners(0, controller.signal, again.signal);
  let first = { name: "", at: 0 };
  const hear = (name: NodeJS.Signals) => {
    const at = performance.now();
    if (controller.signal.aborted) {
      if (name === first.name && at - first.at < SAME_SIGNAL_MS) return;
      if (drains && !again.signal.aborted) {
        first = { name, at };
        again.abort(new Interrupted(name));
        return;
      }
      stop();
      process.kill(process.pid, name);
      return;
    }
    first = { name, at };
    const what = drains ? "letting running work end" : "stopping running work, saving finished work";
    process.stderr.write(`\n${name}: ${what} (once more to end at once)\n`);
    controller.abort(new Interrupted(name));
  };
  const listeners = SIGNALS.map((name) => ({ name, listener: () => hear(name) }));
  const outputs = [process.stdout, process.stderr];
  const onClosedOutput = (error: Error) => controller.abort(new Interrupted("SIGPIPE", error));
  const stop = () => {
    for (const { name, listener } of listeners) process.removeListener(name, listener);
    for (const output of outputs) output.removeListener("error", onClosedOutput);
  };
  for (const output of outputs) {
    output.on("error", onClosedOutput);
    // The last messages fail as well, after the listening has stopped.
    if (!output.listeners("error").includes(ignore)) output.on("error", ignore);
  }
  for (const { name, listener } of listeners) process.on(name, listener);
  const interrupt = (reason: unknown) => controller.abort(reason);
  return { signal: controller.signal, again: again.signal, interrupt, stop };
}
