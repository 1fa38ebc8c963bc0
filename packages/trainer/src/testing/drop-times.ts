/** What a run computes, without what the clock and the machine's memory say. */
export function dropTimes(metrics: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).filter(([name]) => !/^(timing_|perf\/(throughput|time_per_step|.*memory.*))/.test(name)),
  );
}
