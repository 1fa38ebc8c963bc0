import { readFile } from "node:fs/promises";

/** Metrics of one step by their names in the field. */
export type StepMetrics = Record<string, number>;

/** Lines of a `metrics.jsonl`; none where it is missing. One that a kill cut short is left out. */
export async function readMetricLines(file: string): Promise<StepMetrics[]> {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n");
  return lines.flatMap((line) => {
    const metrics = parseLine(line);
    return metrics && Number.isFinite(stepOf(metrics)) ? [metrics] : [];
  });
}

/** The step of a line of metrics; a line that a kill cut short belongs to none. */
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
