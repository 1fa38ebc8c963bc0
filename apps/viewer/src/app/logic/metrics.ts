import type { MetricTable } from "../../api/index.js";
import type { ChartAxis, ChartSeries } from "../ui/chart.js";
import { smooth } from "./ema.js";
import { formatNumber } from "./format.js";

/** The metric of the training's progress; for sft its loss. Null: the run has neither. */
export function chooseMainMetric(columns: readonly string[]): string | null {
  const names = ["reward_extra/success/mean", "reward_extra/acc/mean", "reward/score/mean", "critic/score/mean"];
  return [...names, "train/loss"].find((name) => columns.includes(name)) ?? null;
}

/** The curves of a run that people look at first: training and held out, of success, or of sft's loss. */
export function drawProgress(table: MetricTable): { title: string; series: ChartSeries[] } | null {
  const main = chooseMainMetric(Object.keys(table.columns));
  const isLoss = main === "train/loss";
  const look = { axis: "step", smoothing: 0.6, color: 1 } as const;
  const training = main && makeSeries(table, main, { ...look, label: "training" });
  const validated = isLoss
    ? makeSeries(table, "val/loss", { ...look, label: "held out", smoothing: 0 })
    : { x: table.heldOut.map(({ step }) => step), y: table.heldOut.map(({ success }) => success) };
  const heldOut = validated && { ...validated, label: "held out", color: 2, points: true };
  const series = [training, heldOut].flatMap((curve) => (curve && curve.x.length > 0 ? [curve] : []));
  return series.length > 0 ? { title: isLoss ? "Loss by step" : "Success by step", series } : null;
}

/** A description of curves for screen readers. */
export function describeCurves(title: string, series: readonly ChartSeries[]): string {
  const parts = series.map(({ label, raw, y }) => {
    const values = (raw ?? y).filter((value) => value !== null);
    const [first, last] = [values[0], values.at(-1)].map((value) => formatNumber(value));
    return values.length > 1 ? `${label} from ${first} to ${last}` : `${label} ${first}`;
  });
  return `${title}: ${parts.join(", ")}`;
}

/** The metrics that people look at first, then the rest by name. */
export function sortMetrics(columns: readonly string[]): string[] {
  const rank = (name: string) => {
    const at = FIRST.findIndex((start) => name.startsWith(start));
    return at < 0 ? FIRST.length : at;
  };
  return [...columns].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

const FIRST = [
  "val-core/",
  "train/loss",
  "val/loss",
  "reward/score/mean",
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
