/** Work exceeded its time limit. */
export class DeadlineExceeded extends Error {}

/** Safe for any thrown value; never throws. */
export function isDeadlineExceeded(error: unknown): boolean {
  try {
    return error instanceof DeadlineExceeded;
  } catch {
    return false;
  }
}

const longestTimer = 2 ** 31 - 1;

/** Pauses a deadline's clock; the returned function resumes it, once. Pauses may overlap. */
export type PauseDeadline = () => () => void;

/**
 * Runs untrusted work, which may throw, hang or return no promise. At the deadline (`seconds`; null: none), or when
 * `parent` aborts, the work's signal aborts and the result rejects at once; whatever the work still does is ignored.
 * Work that waits for its turn pauses the clock meanwhile. Listeners and timers are always removed, because `parent`
 * lives as long as a run.
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
        // No timer interrupts work that blocks the event loop, but its late result does not count either.
        if (!isSettled && pauses === 0 && performance.now() - startedAt > leftMs) return late();
        cleanUp();
        settleWith(value);
      };
    Promise.resolve()
      .then(() => work(controller.signal, pauseDeadline))
      .then(settle(resolve), settle(reject));
  });
}

/** Maximum number of characters of an error's text: records and logs keep it. */
const longestText = 10_000;

/** Text of any thrown value, of at most 10,000 characters. Never throws, even if the error's getters do. */
export function describeError(error: unknown): string {
  try {
    const text = describe(error) || "an error without a message";
    return text.length > longestText ? `${text.slice(0, longestText)} (cut)` : text;
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
