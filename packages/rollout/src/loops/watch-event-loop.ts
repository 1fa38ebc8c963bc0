/** Interval of the checks, and the longest stall without a warning, in milliseconds. */
interface WatchOptions {
  everyMs?: number;
  longestMs?: number;
}

/**
 * Warns when the event loop has stalled: a tool or a judge that computes without awaiting blocks all other
 * conversations, and no deadline can interrupt it.
 */
export function watchEventLoop(
  warn: (warning: string) => void,
  { everyMs = 1000, longestMs = 5000 }: WatchOptions = {},
): { stop: () => void } {
  let seen = performance.now();
  const timer = setInterval(() => {
    const stoodMs = performance.now() - seen - everyMs;
    seen = performance.now();
    if (stoodMs < longestMs) return;
    const seconds = (stoodMs / 1000).toFixed(1);
    warn(
      [
        "the event loop stood still: nothing else ran, and no deadline could end what held it",
        `  for ${seconds} s; perhaps a tool or a reward computes without awaiting (or the machine slept): let it work in a worker or a child process`,
      ].join("\n"),
    );
  }, everyMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
