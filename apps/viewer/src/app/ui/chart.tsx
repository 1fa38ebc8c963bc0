import { createEffect, on, onCleanup, onMount } from "solid-js";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../data/theme.js";
import { formatCount, formatNumber, formatSeconds } from "../logic/format.js";

export interface ChartSeries {
  label: string;
  /** A colour of the theme, 1 to 8. */
  color: number;
  x: readonly number[];
  y: readonly (number | null)[];
  /** Drawn pale below the smoothed line. */
  raw?: readonly (number | null)[];
  /** True: marks each value; for few values that are far apart. */
  points?: boolean;
}

export type ChartAxis = "step" | "time" | "tokens";

/** Curves over steps, seconds or tokens. Dragging zooms, a double click shows all again. */
export function Chart(props: {
  series: readonly ChartSeries[];
  axis: ChartAxis;
  label: string;
  height?: number;
  share?: boolean;
}) {
  let host!: HTMLDivElement;
  let plot: uPlot | undefined;

  const draw = () => {
    plot?.destroy();
    const colors = readColors(host);
    plot = new uPlot(
      {
        width: Math.max(120, host.clientWidth),
        height: props.height ?? 220,
        padding: [10, 20, 0, 0],
        scales: {
          x: { time: false },
          y: props.share ? { range: (_, low, high) => [Math.min(0, low), Math.max(1, high)] } : {},
        },
        axes: [
          {
            ...describeAxis(colors),
            size: 28,
            values: (_, splits) => splits.map((value) => formatX(value, props.axis)),
          },
          { ...describeAxis(colors), size: 48, values: (_, splits) => splits.map((value) => formatNumber(value)) },
        ],
        legend: { live: true },
        cursor: { points: { size: 6 }, y: false },
        series: [
          { label: props.axis, value: (_, value) => (value === null ? "" : formatX(value, props.axis)) },
          ...props.series.flatMap((series) => describeSeries(series, colors)),
        ],
      },
      joinSeries(props.series),
      host,
    );
  };
  onMount(() => {
    createEffect(on(() => [props.series, props.axis, theme()] as const, draw));
    const watcher = new ResizeObserver(() =>
      plot?.setSize({ width: Math.max(120, host.clientWidth), height: props.height ?? 220 }),
    );
    watcher.observe(host);
    onCleanup(() => {
      watcher.disconnect();
      plot?.destroy();
    });
  });
  return <div class="chart" role="img" aria-label={props.label} ref={host} />;
}

function describeAxis(colors: (name: string) => string): uPlot.Axis {
  return {
    stroke: colors("--soft"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colors("--line"), width: 1 },
    ticks: { show: false },
    gap: 4,
  };
}

function describeSeries(series: ChartSeries, colors: (name: string) => string): uPlot.Series[] {
  const stroke = colors(`--series-${series.color}`);
  const line: uPlot.Series = {
    label: series.label,
    stroke,
    width: 1.75,
    spanGaps: true,
    points: { show: series.points || series.x.length < 2 },
    value: (_, value) => (value === null ? "–" : formatNumber(value)),
  };
  if (!series.raw) return [line];
  return [{ ...line, class: "raw-series", stroke: withAlpha(stroke, 0.28), width: 1, points: { show: false } }, line];
}

/** All curves on one x axis, each with gaps where it has no value. */
function joinSeries(series: readonly ChartSeries[]): uPlot.AlignedData {
  const tables = series.flatMap(({ x, y, raw }) =>
    (raw ? [raw, y] : [y]).map((values) => [[...x], [...values]] as uPlot.AlignedData),
  );
  if (tables.length === 0) return [[], []];
  return uPlot.join(tables);
}

function formatX(value: number, axis: ChartAxis): string {
  if (axis === "time") return value < 60 ? `${formatNumber(value)} s` : formatSeconds(value);
  return axis === "tokens" ? formatCount(value) : formatNumber(value);
}

/** Colours of the theme in the canvas's format. */
export function readColors(host: Element): (name: string) => string {
  const probe = document.createElement("i");
  host.append(probe);
  const known = new Map<string, string>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    if (!probe.isConnected) host.append(probe);
    probe.style.color = `var(${name})`;
    const color = getComputedStyle(probe).color;
    probe.remove();
    known.set(name, color);
    return color;
  };
}

function withAlpha(color: string, alpha: number): string {
  return color.replace(/^rgb\((.*)\)$/, (_, parts: string) => `rgba(${parts}, ${alpha})`);
}
