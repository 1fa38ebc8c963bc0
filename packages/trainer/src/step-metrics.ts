import { readFile } from "node:fs/promises";

/** Metrics of one step, under verl's names. */
export type StepMetrics = Record<string, number>;

/** Reads the lines of a `metrics.jsonl`; none if it is missing. A line that a kill cut short is skipped. */
export async function readMetricLines(file: string): Promise<StepMetrics[]> {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n");
  return lines.flatMap((line) => {
    const metrics = parseLine(line);
    return metrics && Number.isFinite(stepOf(metrics)) ? [metrics] : [];
  });
}

/** Step of a line of metrics; Infinity for a line that a kill cut short. */
export function readStep(line: string): number {
  const metrics = parseLine(line);
  return metrics ? stepOf(metrics) : Number.POSITIVE_INFINITY;
}

const stepOf = (metrics: StepMetrics): number => metrics["training/global_step"] ?? Number.POSITIVE_INFINITY;

function parseLine(line: string): StepMetrics | null {
  try {
    return JSON.parse(line) as StepMetrics | null;
  } catch {
    return null;
  }
}
