/** Shows for each task how methods compare with GRPO: a table, and a figure of the curves. */
import { median } from "../measure.js";
import { alignTable } from "../pages/tables.js";
import type { Report } from "../report.js";
import type { Row } from "../row.js";
import type { Curve } from "./curve.js";
import { drawCurves } from "./draw-curves.js";

export interface LearningRow extends Row {
  /** The number of each seed. */
  seeds: Record<"ours" | "GRPO", number[]>;
  /** Values of "mean success by sampled tokens", one for each seed. */
  curves?: PackedCurve[];
  /** The tokens that this mean is over. */
  budget?: number;
}

/** The points of a run; a file has two lists, which are shorter than a list of points. */
export interface PackedCurve {
  tokens: number[];
  success: number[];
}

export function packCurves(curves: readonly Curve[]): PackedCurve[] {
  return curves.map((curve) => ({
    tokens: curve.map(({ tokens }) => tokens),
    success: curve.map(({ success }) => success),
  }));
}

const unpackCurve = ({ tokens, success }: PackedCurve): Curve =>
  tokens.map((count, i) => ({ tokens: count, success: success[i]! }));

type Show = (values: readonly number[]) => string;

/** A number that was never reached is null in a file. */
const isReached = (value: number | null) => value !== null && Number.isFinite(value);
const showTokens = (value: number | null) => (isReached(value) ? `${(value! / 1000).toFixed(1)}k` : "never");
const showShare = (value: number) => value.toFixed(2);

/** The median of the seeds, and the lowest and the highest one. */
function showSpread(values: readonly number[], show: (value: number) => string): string {
  const sorted = values.map((value) => (isReached(value) ? value : Number.POSITIVE_INFINITY)).sort((a, b) => a - b);
  return `${show(median(sorted))} (${show(sorted[0]!)} to ${show(sorted.at(-1)!)})`;
}

const MEAN = "mean success by sampled tokens";
const columns: readonly [title: string, metric: string, show: Show][] = [
  ["tokens to 0.5", "tokens sampled until 0.5", (values) => showSpread(values, showTokens)],
  ["to 0.9", "tokens sampled until 0.9", (values) => showSpread(values, showTokens)],
  ["mean success by token", MEAN, (values) => showSpread(values, showShare)],
  ["at the end", "success at the end", (values) => showSpread(values, showShare)],
];

const listTasks = (rows: readonly LearningRow[]) => [...new Set(rows.map(({ case: title }) => title.split(": ")[0]!))];
const nameFigure = (task: string) => `learning-${task.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;

/** A line for GRPO and each method, and below it the figure. `part`: the task; left out: all, each with its name. */
export function formatTable({ rows }: Report<LearningRow>, part?: string): string {
  if (part === undefined)
    return listTasks(rows)
      .map((task) => `**${task}**\n\n${formatTable({ rows } as Report<LearningRow>, task)}`)
      .join("\n\n");
  const own = rows.filter(({ case: title }) => title.startsWith(`${part}: `));
  const shown = columns.filter(([, metric]) => own.some((row) => row.metric.startsWith(metric)));
  const names = [...new Set(own.map(({ case: title }) => title.slice(part.length + 2)))].filter(
    (name) => name !== GRPO,
  );
  const describe = (name: string, side: "ours" | "GRPO") =>
    shown.map(([, metric, show]) => {
      const row = own.find((one) => one.case === `${part}: ${name}` && one.metric.startsWith(metric));
      return row ? show(row.seeds[side]) : "";
    });
  const table = alignTable([
    ["method", ...shown.map(([title]) => title)],
    [GRPO, ...describe(names[0]!, "GRPO")],
    ...names.map((name) => [name, ...describe(name, "ours")]),
  ]);
  const title = `Held-out success by sampled tokens: ${part}`;
  return own.some(({ curves }) => curves) ? `${table}\n\n![${title}](${nameFigure(part)}.svg)` : table;
}

const GRPO = "GRPO";

/** A figure of each task whose curves were kept, by its name. */
export function drawFigures({ rows }: Report<LearningRow>): Record<string, string> {
  const figures: Record<string, string> = {};
  for (const task of listTasks(rows)) {
    const own = rows.filter(({ case: title, curves }) => curves && title.startsWith(`${task}: `));
    const methods = own.map((row) => ({
      name: row.case.slice(task.length + 2),
      own: row.curves!.map(unpackCurve),
    }));
    const plain = methods.find(({ name }) => name === GRPO);
    if (plain)
      figures[nameFigure(task)] = drawCurves(
        plain.own,
        methods.filter((method) => method !== plain),
        own[0]!.budget!,
      );
  }
  return figures;
}
