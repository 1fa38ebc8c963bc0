import type { ClusterView, CountsByKind, MetricTable, WorkerState, WorkerView } from "../../api/index.js";
import type { ChartSeries } from "../ui/chart.js";
import { makeSeries } from "./metrics.js";

/** Names of the kinds of jobs, for people. */
export const KINDS = [
  ["rollout", "conversations"],
  ["score", "logprobs"],
  ["gradient", "gradients"],
] as const;

const ORDER: readonly WorkerState[] = ["shut-out", "failing", "stuck", "ready", "draining", "gone"];

/** Sorts workers: urgent states first, gone ones last; by id within a state. */
export function sortWorkers(workers: readonly WorkerView[]): WorkerView[] {
  const place = ({ state }: WorkerView) => ORDER.indexOf(state);
  return [...workers].sort((a, b) => place(a) - place(b) || (a.id < b.id ? -1 : 1));
}

export const sumKinds = ({ rollout, score, gradient }: CountsByKind): number => rollout + score + gradient;

/** Sums over the workers; slots and jobs in hand only of present ones. */
export function sumWorkers({ workers }: ClusterView) {
  const sum = (list: readonly WorkerView[], read: (worker: WorkerView) => number) =>
    list.reduce((total, worker) => total + read(worker), 0);
  const there = workers.filter(({ state }) => state !== "shut-out" && state !== "gone");
  return {
    ready: workers.filter(({ state }) => state === "ready").length,
    slots: sum(there, (worker) => sumKinds(worker.slots)),
    doing: sum(there, (worker) => sumKinds(worker.doing)),
    done: sum(workers, (worker) => sumKinds(worker.done)),
    rate: sum(there, (worker) => worker.rate),
    passed: sum(workers, (worker) => worker.audits.passed),
    failed: sum(workers, (worker) => worker.audits.failed),
  };
}

/** Present workers that do nothing, with the reason, for people: failing, stuck, or without required parts. */
export function listUseless(workers: readonly WorkerView[]): { id: string; text: string }[] {
  return workers.flatMap(({ id, state, slots, reason, failed, lastFailure, oldest }) => {
    if (state === "failing")
      return {
        id,
        text: `fails, and rests for a while: ${failed} jobs failed, the last one: ${lastFailure ?? "unknown"}`,
      };
    if (state === "stuck")
      return { id, text: `is stuck: others did its last jobs sooner; its oldest job in hand has ${oldest} s` };
    if (state === "ready" && sumKinds(slots) === 0 && reason !== null) return { id, text: `takes no jobs: ${reason}` };
    return [];
  });
}

/** The counts of jobs by kind: "12 conversations, 3 gradients". Kinds without any are left out. */
export function describeKinds(counts: CountsByKind): string {
  const parts = KINDS.flatMap(([kind, name]) =>
    counts[kind] > 0 ? [`${counts[kind].toLocaleString("en")} ${name}`] : [],
  );
  return parts.join(", ") || "none";
}

/** Jobs in hand and slots, for each kind that the worker does: "3/8 conversations". */
export function describeSlots({ slots, doing }: Pick<WorkerView, "slots" | "doing">): string {
  const parts = KINDS.flatMap(([kind, name]) =>
    slots[kind] > 0 || doing[kind] > 0 ? [`${doing[kind]}/${slots[kind]} ${name}`] : [],
  );
  return parts.join(", ") || "none";
}

/** The page's charts over the steps: a title, and metrics `cluster/<name>` with their names. */
const CHARTS: readonly (readonly [title: string, curves: readonly (readonly [metric: string, label: string])[]])[] = [
  ["Workers", [["workers", "workers"]]],
  [
    "Jobs done",
    [
      ["jobs_elsewhere", "by workers"],
      ["jobs_here", "by the coordinator"],
    ],
  ],
  [
    "Jobs that were begun again",
    [
      ["redelivered", "redelivered"],
      ["copies", "second copies of slow ones"],
      ["abandoned", "lost, done here"],
    ],
  ],
  [
    "Results computed again",
    [
      ["audits", "audits"],
      ["audits_failed", "failed"],
      ["audits_open", "undecided"],
    ],
  ],
  [
    "Workers' logprobs against the step's own, nats",
    [
      ["logprob_diff_mean", "largest mean of a conversation"],
      ["logprob_diff_max", "largest of a token"],
    ],
  ],
  ["Conversations by workers of another class", [["other_class", "conversations"]]],
  [
    "Megabytes sent",
    [
      ["policy_bytes", "weights"],
      ["gradient_bytes", "gradients"],
      ["job_bytes", "jobs"],
      ["image_bytes", "images"],
    ],
  ],
  ["Seconds to send the weights", [["policy_seconds", "seconds"]]],
];

function makeCurve(table: MetricTable, metric: string, label: string, color: number): ChartSeries | null {
  const curve = makeSeries(table, `cluster/${metric}`, { label, color, axis: "step", smoothing: 0 });
  if (!metric.endsWith("_bytes")) return curve;
  return curve && { ...curve, y: curve.y.map((bytes) => bytes && bytes / 1e6) };
}

/** The charts that a run has numbers for. */
export function makeClusterCharts(table: MetricTable): { title: string; series: ChartSeries[] }[] {
  return CHARTS.flatMap(([title, curves]) => {
    const series = curves.flatMap(([metric, label], i) => makeCurve(table, metric, label, i + 1) ?? []);
    return series.length > 0 ? [{ title, series }] : [];
  });
}
