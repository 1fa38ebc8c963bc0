/** The work took longer than it may. */
export class DeadlineExceeded extends Error {}

/** Never throws: what was thrown may be anything. */
export function isDeadlineExceeded(error: unknown): boolean {
  try {
    return error instanceof DeadlineExceeded;
  } catch {
    return false;
  }
}

const longestTimer = 2 ** 31 - 1;

/** Stops the clock of a deadline; what it gives lets the clock go on, once. Pauses may overlap. */
export type PauseDeadline = () => () => void;

/**
 * Runs work that others wrote: it may throw, hang or return no promise. When time is up (null: never) or `parent` aborts, the work's
 * signal aborts and the result rejects at once; what the work still does is then nobody's business. Work that waits for its
 * turn pauses the clock meanwhile.
 * Listeners and timers are removed in every case, for `parent` lives as long as a run.
 */
export function runWithDeadline<T>(
  seconds: number | null,
  parent: AbortSignal | undefined,
  work: (signal: AbortSignal, pauseDeadline: PauseDeadline) => Promise<T> | T,
): Promise<T> {
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    let isSettled = false;
    const cleanUp = () => {
      isSettled = true;
      clearTimeout(timer);
      parent?.removeEventListener("abort", onAbort);
    };
    const stop = (reason: unknown) => {
      cleanUp();
      controller.abort(reason);
      reject(reason);
    };
    const onAbort = () => stop(parent?.reason);
    const late = () => stop(new DeadlineExceeded(`no answer within ${seconds} s`));
    let timer: NodeJS.Timeout | undefined;
    let leftMs = seconds === null ? Number.POSITIVE_INFINITY : seconds * 1000;
    let startedAt = 0;
    let pauses = 0;
    const startClock = () => {
      startedAt = performance.now();
      if (leftMs < Number.POSITIVE_INFINITY) timer = setTimeout(late, Math.min(leftMs, longestTimer));
    };
    const pauseDeadline = () => {
      if (pauses++ === 0) {
        clearTimeout(timer);
        leftMs -= performance.now() - startedAt;
      }
      let isPaused = true;
      return () => {
        if (isPaused && --pauses === 0 && !isSettled) startClock();
        isPaused = false;
      };
    };
    if (parent?.aborted) return onAbort();
    parent?.addEventListener("abort", onAbort, { once: true });
    startClock();
    const settle =
      <V>(settleWith: (value: V) => void) =>
      (value: V) => {
        // No timer interrupts work that holds the event loop, but its late result does not count either.
        if (!isSettled && pauses === 0 && performance.now() - startedAt > leftMs) return late();
        cleanUp();
        settleWith(value);
      };
    Promise.resolve()
      .then(() => work(controller.signal, pauseDeadline))
      .then(settle(resolve), settle(reject));
  });
}

/** Whatever was thrown, as a text. Never throws: others wrote the error too. */
export function describeError(error: unknown): string {
  try {
    return describe(error) || "an error without a message";
  } catch {
    return "an error that cannot be described";
  }
}

function describe(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  const { message } = error as { message?: unknown };
  if (typeof message === "string") return message || String((error as { name?: unknown }).name ?? "");
  const isPlain = error.toString === undefined || error.toString === Object.prototype.toString;
  return isPlain ? JSON.stringify(error) : String(error);
}
