import { readFile } from "node:fs/promises";

/** Metrics of one step by their names in the field. */
export type StepMetrics = Record<string, number>;

/** Lines of a `metrics.jsonl`; none where it is missing. One that a kill cut short is left out. */
export async function readMetricLines(file: string): Promise<StepMetrics[]> {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n");
  return lines.filter((line) => Number.isFinite(readStep(line))).map((line) => JSON.parse(line) as StepMetrics);
}

/** The step of a line of metrics; a line that a kill cut short belongs to none. */
export function readStep(line: string): number {
  try {
    return (JSON.parse(line) as StepMetrics)["training/global_step"] ?? Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
