/** What a run computes, without what the clock says. */
export function dropTimes(metrics: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).filter(([name]) => !/^(timing_|perf\/(throughput|time_per_step))/.test(name)),
  );
}
