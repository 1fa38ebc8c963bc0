/** Metrics of a run without those that depend on the clock or the machine's memory. */
export function dropTimes(metrics: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).filter(([name]) => !/^(timing_|perf\/(throughput|time_per_step|.*memory.*))/.test(name)),
  );
}
