import type { RunStatus, RunSummary } from "@cria/viewer/api";
import { drawSparkline } from "../demo/draw-chart.js";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { cutLeft, wrapText } from "../terminal/wrap-text.js";

const paint: Record<RunStatus, (text: string) => string> = {
  running: pc.cyan,
  ended: pc.green,
  failed: pc.red,
  stale: pc.yellow,
  empty: pc.dim,
};
/** Characters of the spark line. */
const CURVE = 16;
const EIGHT_HOURS = 8 * 3600;

/** Runs as a table: status, steps, success before and after with its curve, age, model. */
export function drawRuns(runs: readonly RunSummary[], width: number, now = Date.now()): string[] {
  const rows = runs.map((run) => [
    cutLeft(makePrintableLine(run.path), Math.max(12, width - 60)),
    run.status,
    run.total === null ? `${run.step}` : `${run.step}/${run.total}`,
    `${formatShare(run.before)} → ${formatShare(run.after)}`,
    drawSparkline(shorten(run.curve)),
    run.updatedAt === null ? "" : formatAge((now - run.updatedAt) / 1000),
    makePrintableLine(run.model ?? ""),
  ]);
  const wide = rows.length > 0 ? rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length))) : [];
  return rows.flatMap((row, k) => {
    const cells = row.map((cell, i) =>
      i === 1 ? paint[runs[k]!.status](cell.padEnd(wide[i]!)) : cell.padEnd(wide[i]!),
    );
    const line = wrapText(cells.join("  ").trimEnd(), width)[0]!;
    const { trouble } = runs[k]!;
    return trouble === null ? [line] : [line, ...wrapText(`  ${makePrintableLine(trouble)}`, width).map(pc.red)];
  });
}

function formatShare(share: number | null): string {
  return share === null ? "    ?" : share.toFixed(3);
}

function shorten(curve: readonly number[]): number[] {
  if (curve.length <= CURVE) return [...curve];
  return Array.from({ length: CURVE }, (_, i) => curve[Math.round((i * (curve.length - 1)) / (CURVE - 1))]!);
}

/** 90 seconds as "1 min". */
export function formatAge(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 6 * EIGHT_HOURS ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} days`;
}
