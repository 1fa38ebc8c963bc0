export interface LinkedSignal {
  signal: AbortSignal;
  abort: (reason: unknown) => void;
  unlink: () => void;
}

/**
 * A signal that aborts with the first of several. `unlink` removes its listeners from signals that live longer, which
 * `AbortSignal.any` leaves to the garbage collector.
 */
export function linkSignals(...signals: AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const listeners = signals.map((signal) => ({ signal, abort: () => controller.abort(signal.reason) }));
  for (const { signal, abort } of listeners) {
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  }
  const unlink = () => {
    for (const { signal, abort } of listeners) signal.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), unlink };
}
