import { setTimeout as sleep } from "node:timers/promises";
import { type MetricRow, readHeldOut } from "../runs/metrics-file.js";
import { formatCount } from "../terminal/progress.js";
import { drawView, type Pane, panes } from "./draw-view.js";
import { type RunView, ViewReader } from "./read-view.js";
import { Screen, type ScreenInput, type ScreenOutput } from "./screen.js";

const INTERVAL_MS = 1000;

export interface WatchOptions {
  input: ScreenInput;
  output: ScreenOutput;
  /** Stops watching. */
  signal: AbortSignal;
}

/** Shows a run on the whole screen until the user types q. The terminal is restored in every case. */
export async function watchOnScreen(path: string, { input, output, signal }: WatchOptions): Promise<void> {
  const reader = new ViewReader(path);
  let view = await reader.refresh();
  let pane: Pane = "overview";
  let scroll = 0;
  const over = new AbortController();
  const stop = () => over.abort();
  signal.addEventListener("abort", stop, { once: true });
  const onKey = (key: string) => {
    const at = panes.indexOf(pane);
    const goTo = (index: number) => {
      pane = panes[(index + panes.length) % panes.length]!;
      scroll = 0;
    };
    if (key === "q" || key === "\x03" || key === "\x04") return stop();
    if (/^[1-5]$/.test(key)) goTo(Number(key) - 1);
    else if (key === "\t" || key === "right") goTo(at + 1);
    else if (key === "left") goTo(at - 1);
    else if (key === "j" || key === "down") scroll++;
    else if (key === "k" || key === "up") scroll = Math.max(0, scroll - 1);
    else if (key === " " || key === "page down") scroll += screen.size.height - 6;
    else if (key === "b" || key === "page up") scroll = Math.max(0, scroll - screen.size.height + 6);
    else return;
    draw();
  };
  const draw = () => screen.draw(drawView(view, { ...screen.size, pane, scroll }));
  const screen = new Screen(input, output, onKey, () => draw());
  try {
    draw();
    if (signal.aborted) stop();
    while (!over.signal.aborted) {
      await sleep(INTERVAL_MS, undefined, { signal: over.signal }).catch(() => undefined);
      if (over.signal.aborted) break;
      view = await reader.refresh();
      draw();
    }
  } finally {
    signal.removeEventListener("abort", stop);
    screen.close();
  }
}

/** Writes a line for each step, until the run is over: for files, pipes and scripts. */
export async function watchAsLines(
  path: string,
  write: (line: string) => void,
  { json, signal }: { json: boolean; signal: AbortSignal },
): Promise<void> {
  const reader = new ViewReader(path);
  let written = 0;
  for (;;) {
    const view = await reader.refresh();
    // A run that resumed from an earlier step has fewer of them.
    if (view.rows.length < written) written = 0;
    // Before the first step there is a line with only its number, if nothing is held out.
    for (const row of view.rows.slice(written).filter(({ size }) => size > 1))
      write(json ? JSON.stringify(Object.fromEntries(row)) : describeRow(row, view));
    written = view.rows.length;
    if (view.summary.status !== "running" || signal.aborted) return;
    await sleep(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

function describeRow(row: MetricRow, { summary }: RunView): string {
  const show = (name: string, label: string, format: (value: number) => string) => {
    const value = row.get(name);
    return value === undefined || value === null ? [] : [`${label} ${format(value)}`];
  };
  const held = readHeldOut(row);
  const total = summary.total === null ? "" : `/${summary.total}`;
  return [
    `step ${row.get("training/global_step")}${total}`,
    ...show("critic/rewards/mean", "reward", (value) => value.toFixed(3)),
    ...show("reward/score/mean", "success", (value) => value.toFixed(3)),
    ...(held === null ? [] : [`held out ${held.toFixed(3)}`]),
    ...show("train/loss", "loss", (value) => value.toFixed(4)),
    ...show("perf/throughput", "tok/s", formatCount),
    ...show("agent_loop/tool_error_rate", "tool errors", (value) => `${(100 * value).toFixed(1)} %`),
    ...show("cluster/workers", "workers", String),
    ...(row.get("cluster/audits_failed") ? show("cluster/audits_failed", "audits failed", String) : []),
  ].join("  ");
}
