import { setMaxListeners } from "node:events";
import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** npm passes a Ctrl-C on to a process that the terminal has told already: within this time it is the same one. */
const SAME_SIGNAL_MS = 300;

/** Why a command was aborted. SIGPIPE: whoever read its output is gone. */
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
  /** Whether the first one lets end what runs, so that there is a second that stops it; default false. */
  drains?: boolean;
}

/** Output that nobody reads any more is not worth an error each time; as an uncaught one it would be told, and fail again, for ever. */
const ignore = () => undefined;

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP; a second one ends the process as if nobody had listened. With `drains` the second
 * aborts `again`, and a third one ends the process. Output that cannot be written (`cria train | head`, a terminal that was closed)
 * aborts as a signal does, with SIGPIPE.
 * @returns the signals to work under, what aborts the first one for another reason, and what ends the listening.
 */
export function listenForSignals({ drains = false }: ListenOptions = {}): {
  signal: AbortSignal;
  again: AbortSignal;
  interrupt: (reason: unknown) => void;
  stop: () => void;
} {
  const controller = new AbortController();
  const again = new AbortController();
  // Every running conversation listens.
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
    const what = drains ? "letting end what runs" : "ending what runs, saving what is done";
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
    // What is said at the end fails as well, after the listening.
    if (!output.listeners("error").includes(ignore)) output.on("error", ignore);
  }
  for (const { name, listener } of listeners) process.on(name, listener);
  const interrupt = (reason: unknown) => controller.abort(reason);
  return { signal: controller.signal, again: again.signal, interrupt, stop };
}
