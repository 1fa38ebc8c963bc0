import { ToolError } from "@cria/core";
import { findEpisode } from "@cria/episodes";

/** Hears of what ends a process behind its command's back, while the command works. */
export interface ProcessGuard {
  /** The command's work is over: the process may end. */
  stop(): void;
}

/**
 * A promise of the user's that rejects and that nobody awaits, or an error that a callback of the user's throws later, would end the
 * process at once, with a stack and nothing else. Here it goes to `interrupt`, which lets the command save what is done. That somebody
 * ends the process before the work is over (`process.exit` in a reward) cannot be stopped; it is told, and is no success.
 * @param describeNext how to go on, after the end.
 */
export function guardProcess(interrupt: (stray: ToolError) => void, describeNext: () => string): ProcessGuard {
  const onRejection = (reason: unknown) => interrupt(makeStray(reason, "a promise rejected that nobody awaited"));
  const onException = (error: unknown, origin: string) => {
    // Node tells of a rejection here too, where nobody hears the other event.
    if (origin === "uncaughtException") interrupt(makeStray(error, "a callback threw after its call was over"));
  };
  const onExit = (code: number) => {
    // The event is told within the call: below `process.exit` on the stack stands who called it.
    const [, callers] = (new Error().stack ?? "").split("at process.exit");
    const [frame = ""] = findOwnFrames(callers);
    const lines = [
      "the process was ended before its work was done",
      ...(frame === "" ? [] : [`  by: process.exit, called ${frame}`]),
      `  go on: ${describeNext()}`,
    ];
    process.stderr.write(`\n${lines.join("\n")}\n`);
    if (code === 0) process.exitCode = 1;
  };
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onException);
  process.on("exit", onExit);
  return {
    stop: () => {
      process.off("unhandledRejection", onRejection);
      process.off("uncaughtException", onException);
      process.off("exit", onExit);
    },
  };
}

/** The error that names what was lost: which conversation, which line. */
function makeStray(cause: unknown, how: string): ToolError {
  const episode = findEpisode();
  const where = episode ? `${episode.sample} of step ${episode.step}` : "no conversation";
  const frames = cause instanceof Error ? findOwnFrames(cause.stack) : [];
  return new ToolError(how, {
    code: "user-code/stray-error",
    subject: where,
    expected: "code that awaits each promise, and catches what its callbacks throw",
    received: [showError(cause), ...frames.slice(0, 5)].join("\n    "),
    remedy: "await the call, or give it a .catch",
    cause,
  });
}

function showError(cause: unknown): string {
  try {
    return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  } catch {
    return "a value that cannot be shown";
  }
}

/** Lines of a stack that are neither Node's nor a package's, nearest first. */
function findOwnFrames(stack: string | undefined): string[] {
  const frames = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return frames.map((line) => line.trim()).filter((line) => !/\(?node:|node_modules/.test(line));
}
