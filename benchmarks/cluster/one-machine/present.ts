/** The part of `docs/cluster-measured.md` about trainings on one machine. */
import { alignTable } from "../../pages/tables.js";
import { formatNumber, type Report } from "../../report.js";
import { ONE_WORKER_CASE, WAITING_CASE } from "./cases.js";

type Rows = Report["rows"];

/** Conversations per second by the number of workers, and their share of as many times one worker. */
export const formatWaiting = (rows: Rows) => formatCase(rows, WAITING_CASE);

/** Seconds of a step and of its parts, with and without a bus. */
export const formatOneWorker = (rows: Rows) => formatCase(rows, ONE_WORKER_CASE);

function formatCase(rows: Rows, title: string): string {
  const chosen = rows.filter((row) => row.case === title);
  if (chosen.length === 0) return "Not measured on this machine.";
  const peers = [...new Set(chosen.flatMap((row) => Object.keys(row.peers)))];
  const lines = chosen.map(({ metric, ours, peers: values, ratio, target, met }) => [
    metric,
    `${formatNumber(ours)}${met === false ? ` (**missed**: ${target})` : ""}`,
    ...peers.map((name) =>
      values[name] === undefined ? "" : `${formatNumber(values[name])} (${formatRatio(ratio[name]!)})`,
    ),
  ]);
  return alignTable([["median", "measured", ...peers.map((name) => `${name} (ratio)`)], ...lines]);
}

/** Two decimals: the difference from 1 counts. A part that takes no time on the other side has no ratio. */
const formatRatio = (ratio: number | string) =>
  typeof ratio === "number" && Number.isFinite(ratio) ? ratio.toFixed(2) : "-";
