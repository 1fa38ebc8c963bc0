import { execFileSync } from "node:child_process";
import { cpus, totalmem } from "node:os";
import type { Row } from "./row.js";

export interface Report<R extends Row = Row> {
  name: string;
  hardware: string;
  commit: string;
  /** `ratio` is ours over each peer, whether more or less of the metric is better. */
  rows: (R & { ratio: Record<string, number> })[];
}

export function makeReport(name: string, rows: readonly Row[]): Report {
  const [cpu] = cpus();
  const hardware = `${cpu?.model.trim() ?? "unknown CPU"}, ${cpus().length} threads, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  return { name, hardware, commit: describeCommit(), rows: rows.map(addRatios) };
}

function addRatios(row: Row): Report["rows"][number] {
  const ratio = Object.fromEntries(Object.entries(row.peers).map(([name, value]) => [name, row.ours / value]));
  return { ...row, ratio };
}

export function printReport(report: Report): void {
  console.log(`${report.name} on ${report.hardware}, commit ${report.commit}\n`);
  for (const { case: title, metric, ours, peers, ratio, target, met } of report.rows) {
    console.log(`${title}: ${metric}`);
    console.log(`  ${"ours".padEnd(44)} ${formatNumber(ours)}`);
    for (const [name, value] of Object.entries(peers))
      console.log(`  ${name.padEnd(44)} ${formatNumber(value)}   ours / this ${formatNumber(ratio[name]!)}`);
    if (target !== null) console.log(`  target: ${target}: ${met ? "met" : "MISSED"}`);
    console.log("");
  }
}

export function formatNumber(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** With "+changes" when the tracked files differ from it. */
function describeCommit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const changed = git("status", "--porcelain", "--untracked-files=no").trim() !== "";
    return git("rev-parse", "--short", "HEAD").trim() + (changed ? "+changes" : "");
  } catch {
    return "unknown";
  }
}
