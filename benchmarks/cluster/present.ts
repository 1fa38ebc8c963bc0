/** The parts of `docs/cluster-sizes.md` and `docs/cluster-measured.md` that are made from results. */
import { alignTable } from "../pages/tables.js";
import { formatNumber, type Report } from "../report.js";
import { measuredTitles, toInputs } from "./inputs.js";
import { estimateStep, findLimit, WEIGHT_BYTES } from "./model/estimate-step.js";
import { countTrained, type Shape, shapes, type Training } from "./model/shapes.js";
import { formatOneWorker, formatWaiting } from "./one-machine/present.js";

type Rows = Report["rows"];

/**
 * @param part of the page; undefined: the measurements.
 * @throws Error for an unknown part.
 */
export function formatTable({ rows }: Report, part?: string): string {
  if (part === undefined) return formatMeasured(rows);
  const format = parts[part];
  if (!format) throw new Error(`no part ${part} of the cluster's results: ${Object.keys(parts).join(", ")}`);
  return format(rows);
}

const parts: Record<string, (rows: Rows) => string> = {
  sizes: formatSizes,
  speedups: formatSpeedups,
  waiting: formatWaiting,
  "one-worker": formatOneWorker,
};

function formatMeasured(rows: Rows): string {
  const lines = rows
    .filter((row) => measuredTitles.includes(row.case))
    .map((row) => [row.case.replace("measured: ", ""), row.metric, formatLarge(row.ours)]);
  return alignTable([["of", "measured", "median"], ...lines]);
}

const formatLarge = (value: number) =>
  value >= 1e9
    ? `${formatNumber(value / 1e9)} G`
    : value >= 1e6
      ? `${formatNumber(value / 1e6)} M`
      : formatNumber(value);

const listModels = (...trainings: Training[]): { shape: Shape; training: Training; name: string }[] =>
  trainings.flatMap((training) =>
    Object.values(shapes).map((shape) => ({
      shape,
      training,
      name: `${shape.name} ${training === "lora" ? "LoRA" : "full"}`,
    })),
  );

/** Bytes that one step moves, on any machine. */
function formatSizes(): string {
  const lines = listModels("lora", "full").map(({ shape, training, name }) => {
    const weights = countTrained(shape, training);
    const bytes = weights * WEIGHT_BYTES;
    // One blob, by default: 1 GiB.
    const kept = bytes > 2 ** 30 ? "none: a blob has 1 GiB" : `${Math.floor((20 * 2 ** 30) / bytes)}`;
    return [name, `${formatNumber(weights / 1e6)} M`, formatBytes(bytes), kept, formatBytes(1000 * bytes)];
  });
  const head = ["", "trained weights", "a gradient, or weights", "in the server's 20 GiB", "1,000 of them"];
  return alignTable([head, ...lines]);
}

/** Numbers of workers, and the wire of their server. */
const sizes: [workers: number, gbitPerSecond: number][] = [
  [1, 1],
  [4, 1],
  [16, 25],
  [64, 25],
  [256, 25],
];

/** Speed relative to one process, and the activity that limits a step. */
function formatSpeedups(rows: Rows): string {
  const inputs = toInputs(rows);
  // The smallest and the largest: the others lie between.
  const shown = listModels("lora").filter(({ shape }) => shape.name !== "4B");
  const lines = shown.flatMap(({ shape, training, name }) =>
    [1, 50].flatMap((speed) =>
      [512, 8192].map((microBatchTokens) => [
        `${name}, ${speed === 1 ? "as measured" : `${speed} times as fast`}`,
        formatCount(microBatchTokens),
        ...sizes.map(([workers, gbitPerSecond]) => {
          const step = estimateStep({ shape, training, workers, speed, microBatchTokens, gbitPerSecond }, inputs);
          return `${step.speedup.toPrecision(2)}; ${findLimit(step)}`;
        }),
      ]),
    ),
  );
  const head = sizes.map(([workers, gbit]) => `${workers} ${workers === 1 ? "worker" : "workers"}, ${gbit} Gbit/s`);
  return alignTable([["workers", "micro-batch", ...head], ...lines]);
}

const formatCount = (value: number) => value.toLocaleString("en");

function formatBytes(bytes: number): string {
  const [unit, name] = bytes >= 1e12 ? [1e12, "TB"] : bytes >= 1e9 ? [1e9, "GB"] : [1e6, "MB"];
  return `${formatNumber(bytes / unit)} ${name}`;
}
