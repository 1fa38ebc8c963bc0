import { execFileSync } from "node:child_process";
import { cpus, totalmem } from "node:os";

/** One number of ours beside the same number of each peer. */
export interface Row {
  case: string;
  /** What is measured, with its unit. */
  metric: string;
  ours: number;
  peers: Record<string, number>;
  /** The best peer over ours where less is better: more than 1 is a lead. Null without peers. */
  ratio: number | null;
  /** What counts as reached, in words; null when the row only informs. */
  target: string | null;
  met: boolean | null;
}

export interface Report {
  name: string;
  hardware: string;
  commit: string;
  rows: Row[];
}

export function makeReport(name: string, rows: Row[]): Report {
  const [cpu] = cpus();
  const hardware = `${cpu?.model.trim() ?? "unknown CPU"}, ${cpus().length} threads, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  return { name, hardware, commit: describeCommit(), rows };
}

export function printReport(report: Report): void {
  console.log(`${report.name} on ${report.hardware}, commit ${report.commit}\n`);
  for (const { case: title, metric, ours, peers, ratio, target, met } of report.rows) {
    console.log(`${title}: ${metric}`);
    for (const [name, value] of [["ours", ours] as const, ...Object.entries(peers)])
      console.log(`  ${name.padEnd(44)} ${formatNumber(value)}`);
    const notes = [
      ratio === null ? null : `ratio ${formatNumber(ratio)}`,
      target,
      met === null ? null : met ? "met" : "MISSED",
    ];
    console.log(`  ${notes.filter((note) => note !== null).join("; ")}\n`);
  }
}

function formatNumber(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
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
