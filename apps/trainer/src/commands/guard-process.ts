import { ToolError } from "@cria/core";
import { findEpisode } from "@cria/episodes";

/** Watches for events that would end the process without the command's control. */
export interface ProcessGuard {
  /** Stops watching, because the command's work is over. */
  stop(): void;
}

/**
 * Handles the user's unawaited promises that reject, and errors that the user's callbacks throw later: they would end
 * the process at once, with only a stack. Here those of a running agent fail its episode, and all others go to
 * `interrupt`, which lets the command save its results. A `process.exit` during the work (in a reward, say) cannot be
 * stopped; it is reported, and counts as a failure.
 * @param describeNext how to go on, after the end.
 */
export function guardProcess(interrupt: (stray: ToolError) => void, describeNext: () => string): ProcessGuard {
  const onStray = (cause: unknown, how: string) => {
    const stray = makeStray(cause, how);
    if (!findEpisode()?.fail?.(stray)) interrupt(stray);
  };
  const onRejection = (reason: unknown) => onStray(reason, "an unawaited promise rejected");
  const onException = (error: unknown, origin: string) => {
    // Node also reports a rejection here if nobody handles the other event.
    if (origin === "uncaughtException") onStray(error, "a callback threw after its call was over");
  };
  const onExit = (code: number) => {
    // The event runs within the call: the stack below `process.exit` names the caller.
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

/** The error that names the loss: which conversation, which line. */
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

/** Lines of a stack outside Node and packages, nearest first. */
function findOwnFrames(stack: string | undefined): string[] {
  const frames = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return frames.map((line) => line.trim()).filter((line) => !/\(?node:|node_modules/.test(line));
}
