/** Shows for each task how methods compare with GRPO. */
import { median } from "../measure.js";
import { alignTable } from "../pages/tables.js";
import type { Report } from "../report.js";
import type { Row } from "../row.js";

export interface LearningRow extends Row {
  /** The number of each seed. */
  seeds: Record<"ours" | "GRPO", number[]>;
}

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

const columns: readonly [title: string, metric: string, show: Show][] = [
  ["tokens to 0.5", "tokens sampled until 0.5", (values) => showSpread(values, showTokens)],
  ["to 0.9", "tokens sampled until 0.9", (values) => showSpread(values, showTokens)],
  ["mean success on the way", "mean success", (values) => showSpread(values, showShare)],
  ["at the end", "success at the end", (values) => showSpread(values, showShare)],
];

/** A line for GRPO and each method. `part`: the task; left out: a table for each. */
export function formatTable({ rows }: Report<LearningRow>, part?: string): string {
  const tasks = [...new Set(rows.map(({ case: title }) => title.split(": ")[0]!))];
  if (part === undefined)
    return tasks.map((task) => `**${task}**\n\n${formatTable({ rows } as Report<LearningRow>, task)}`).join("\n\n");
  const own = rows.filter(({ case: title }) => title.startsWith(`${part}: `));
  const names = [...new Set(own.map(({ case: title }) => title.slice(part.length + 2)))];
  const describe = (name: string, side: "ours" | "GRPO") =>
    columns.map(([, metric, show]) => {
      const row = own.find((one) => one.case === `${part}: ${name}` && one.metric.startsWith(metric));
      return row ? show(row.seeds[side]) : "";
    });
  const lines = names.map((name) => [name, ...describe(name, "ours")]);
  return alignTable([
    ["method", ...columns.map(([title]) => title)],
    ["GRPO", ...describe(names[0]!, "GRPO")],
    ...lines,
  ]);
}
