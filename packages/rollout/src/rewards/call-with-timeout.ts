/** A call took longer than it may. */
export class TimeoutExceeded extends Error {}

/**
 * Runs work that others wrote, for at most `timeoutS` seconds (null: no limit). An abort of `signal` ends the wait at once.
 * Work that blocks the event loop cannot be interrupted, but its late result does not count either.
 * @throws TimeoutExceeded, or what the work or the signal threw.
 */
export async function callWithTimeout<T>(
  work: () => T | Promise<T>,
  timeoutS: number | null,
  signal?: AbortSignal,
): Promise<T> {
  signal?.throwIfAborted();
  const started = performance.now();
  const limitMs = timeoutS === null ? Number.POSITIVE_INFINITY : timeoutS * 1000;
  const late = () => new TimeoutExceeded(`no result within ${timeoutS} s`);
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      // Timers count in 31 bits; what is longer is no limit.
      if (limitMs < 2 ** 31) timer = setTimeout(() => reject(late()), limitMs);
      onAbort = () => reject(signal!.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      Promise.resolve()
        .then(work)
        .then((value) => (performance.now() - started > limitMs ? reject(late()) : resolve(value)), reject);
    });
  } finally {
    clearTimeout(timer);
    if (onAbort) signal?.removeEventListener("abort", onAbort);
  }
}
