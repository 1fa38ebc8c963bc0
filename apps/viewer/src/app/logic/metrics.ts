import type { MetricTable } from "../../api/index.js";
import type { ChartAxis, ChartSeries } from "../ui/chart.js";
import { smooth } from "./ema.js";

/** Success of the training's conversations where the run measures it, else the mean score. */
export function chooseMainMetric(columns: readonly string[]): string {
  const held = columns.find((name) => /^val-core\/.*mean/.test(name));
  return (
    ["reward_extra/success/mean", "reward_extra/acc/mean", "critic/score/mean"].find((name) =>
      columns.includes(name),
    ) ??
    held ??
    columns[0] ??
    "critic/score/mean"
  );
}

/** Those that people look at first come first, then the rest by name. */
export function sortMetrics(columns: readonly string[]): string[] {
  const rank = (name: string) => {
    const at = FIRST.findIndex((start) => name.startsWith(start));
    return at < 0 ? FIRST.length : at;
  };
  return [...columns].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

const FIRST = [
  "val-core/",
  "critic/score/mean",
  "reward_extra/",
  "critic/",
  "actor/",
  "response_length/",
  "num_turns/",
];

/** A metric of a run as a curve; null when the run lacks it. */
export function makeSeries(
  table: MetricTable,
  metric: string,
  look: { label: string; color: number; axis: ChartAxis; smoothing: number },
): ChartSeries | null {
  const column = table.columns[metric];
  if (!column) return null;
  const kept = column.map((value, i) => (value === null ? -1 : i)).filter((i) => i >= 0);
  if (kept.length === 0) return null;
  const source = { step: table.steps, time: table.seconds, tokens: table.tokens }[look.axis];
  const raw = kept.map((i) => column[i]!);
  const smoothed = look.smoothing > 0 && raw.length > 2;
  return {
    label: look.label,
    color: look.color,
    x: kept.map((i) => source[i]!),
    y: smoothed ? smooth(raw, look.smoothing) : raw,
    ...(smoothed ? { raw } : {}),
  };
}
