/** Milliseconds since 1970 that never run backwards within a process. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}
