/** Shows the algorithms' result as a figure and a table. */
import { alignTable } from "../pages/tables.js";
import type { Report } from "../report.js";
import type { Row } from "../row.js";
import { algorithms, seeds } from "./algorithms.js";
import { drawPanels } from "./draw-panels.js";
import type { TrainingCurves } from "./train-once.js";

export const LEAST = 0.85;

export interface CurveRow extends Row {
  curves: TrainingCurves;
}

/** A panel for each algorithm, a line for each seed. */
export function drawFigure({ rows }: Report<CurveRow>): string {
  const panels = Object.keys(algorithms).map((name) => ({
    title: name,
    lines: rows.filter((row) => row.case.startsWith(`${name}, `)).map(({ curves }) => curves),
  }));
  return drawPanels(panels, LEAST);
}

/** A line for each algorithm, a column for each seed. */
export function formatTable({ rows }: Report<CurveRow>): string {
  const lines = Object.entries(algorithms).map(([name, overrides]) => {
    const runs = rows.filter((row) => row.case.startsWith(`${name}, `));
    const reached = runs.map((row) => (row.met ? row.ours.toFixed(3) : `**${row.ours.toFixed(3)}**`));
    const settings = overrides.map((text) => `\`${text.replace(/^.*\.(?=\w+=)/, "")}\``);
    return [name, settings.join(" "), ...reached, ...addSpread(runs)];
  });
  const head = ["algorithm", "settings", ...seeds.map((seed) => `seed ${seed}`), "mean", "steps to 0.85", "seconds"];
  return alignTable([head, ...lines]);
}

/** Mean success; the latest step at which a seed was first measured above the target; mean seconds of a run. */
function addSpread(runs: readonly CurveRow[]): string[] {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const first = runs.map(
    ({ curves }) => curves.heldOut.find((p) => p.success >= LEAST)?.step ?? Number.POSITIVE_INFINITY,
  );
  return [
    mean(runs.map((row) => row.ours)).toFixed(3),
    first.map((step) => (Number.isFinite(step) ? step : "never")).join(", "),
    mean(runs.map(({ curves }) => curves.seconds)).toFixed(0),
  ];
}
