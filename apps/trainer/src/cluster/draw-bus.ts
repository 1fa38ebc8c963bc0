import type { WorkerInfo } from "@cria/cluster";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { wrapText } from "../terminal/wrap-text.js";
import type { BusState } from "./bus-state.js";

const HEADS = ["worker", "host", "class", "jobs in hand", "oldest", "done", "failed", "declined", "cria", "state"];
const FAILED = HEADS.indexOf("failed");
/** "failing": some of its slots pause, because it failed too often. "useless": it has prepared, but takes no jobs. */
const COLORS = { ready: pc.green, draining: pc.yellow, useless: pc.red, failing: pc.red };

function findState({ draining, slots, class: bits, lacks }: WorkerInfo): keyof typeof COLORS {
  if (draining) return "draining";
  if (Object.values(slots).includes(0)) return "failing";
  return Object.keys(slots).length === 0 && bits !== "" && lacks.length > 0 ? "useless" : "ready";
}

/** Most columns of a text that a worker chose. */
const WIDEST = 24;

/** The workers of a bus as a table, below the policy of their rollouts. Lines are at most `width` columns wide. */
export function drawBus(name: string, { policy, workers }: BusState, width: number): string[] {
  const head = `${pc.bold(makePrintableLine(name))}  ${describeWorkers(workers)}, ${describePolicy(policy)}`;
  if (workers.length === 0)
    return [head, pc.dim("a machine joins with: cria worker --bus ...")].map((line) => cut(line, width));
  const rows = workers.map((worker) => [
    cutText(worker.id),
    cutText(worker.host),
    cutText(worker.class),
    describeSlots(worker),
    worker.oldestS > 0 ? `${worker.oldestS} s` : "",
    ...[worker.done, worker.failed, worker.declined].map(String),
    cutText(worker.versions.cria ?? "?"),
    findState(worker),
  ]);
  const wide = HEADS.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  const pad = (row: readonly string[]) => row.map((cell, i) => cell.padEnd(wide[i]!));
  const body = rows.flatMap((row, k) => {
    const cells = pad(row);
    const last = cells.length - 1;
    const worker = workers[k]!;
    cells[last] = COLORS[findState(worker)](row[last]!);
    if (worker.failed > 0) cells[FAILED] = pc.red(cells[FAILED]!);
    // Reasons why it does not do everything.
    const reasons = [...worker.lacks, ...(worker.lastFailure === null ? [] : [`last failure: ${worker.lastFailure}`])];
    const lines = reasons.flatMap((reason) => wrapText(`  ${makePrintableLine(reason)}`, width));
    return [cut(cells.join("  "), width), ...lines.map(pc.yellow)];
  });
  return [cut(head, width), cut(pc.dim(pad(HEADS).join("  ").trimEnd()), width), ...body];
}

function describeWorkers(workers: readonly WorkerInfo[]): string {
  const draining = workers.filter((worker) => worker.draining).length;
  const left = draining > 0 ? `, ${draining} draining` : "";
  return `${workers.length || "no"} ${workers.length === 1 ? "worker" : "workers"}${left}`;
}

function describePolicy(policy: BusState["policy"]): string {
  if (policy === null) return "no policy yet";
  return `policy version ${policy.version} (weights ${policy.weights.slice(0, 12)})`;
}

/** "rollout 3/8 gradient 0/1": jobs in hand and slots, for each kind that the worker does. */
function describeSlots({ slots, doing }: WorkerInfo): string {
  return Object.entries(slots)
    .map(([name, places]) => `${name} ${doing.filter(({ kind }) => kind === name).length}/${places}`)
    .join(" ");
}

function cutText(text: string): string {
  const line = makePrintableLine(text);
  return line.length > WIDEST ? `${line.slice(0, WIDEST - 1)}…` : line;
}

const cut = (line: string, width: number): string => wrapText(line, width)[0] ?? "";
