import { execFileSync } from "node:child_process";
import { describeMachine, type Machine } from "./machine.js";
import type { Measured, PeerCheck, Row } from "./row.js";

export interface Report<R extends Row = Row> {
  name: string;
  machine: Machine;
  peerChecks: PeerCheck[];
  rows: (R & Added)[];
}

interface Added {
  /** Ours over each peer, whether more or less of the metric is better; with a crippled peer the reason instead. */
  ratio: Record<string, number | string>;
  /** The measured commit; with "+changes" when tracked files differed from it. */
  commit: string;
}

export function makeReport(name: string, measured: Measured, machine: Machine, commit: string): Report {
  const rows = measured.rows.map((row) => ({ ...row, ...judgeCrippled(row), ratio: makeRatios(row), commit }));
  return { name, machine, peerChecks: measured.peerChecks ?? [], rows };
}

function makeRatios({ ours, peers, crippled }: Row): Added["ratio"] {
  const ratio = (name: string) => (crippled?.[name] ? `peer crippled: ${crippled[name]}` : ours / peers[name]!);
  return Object.fromEntries(Object.keys(peers).map((name) => [name, ratio(name)]));
}

/** Nothing is reached against a crippled peer, nor missed. */
function judgeCrippled({ peers, crippled = {}, met }: Row): Pick<Row, "met"> {
  return { met: Object.keys(peers).some((name) => crippled[name]) ? null : met };
}

export function printReport(report: Report): void {
  console.log(`${report.name} on ${describeMachine(report.machine)}; commit ${report.rows[0]?.commit ?? "unknown"}\n`);
  for (const check of report.peerChecks) console.log(`${describeCheck(check)}\n`);
  for (const { case: title, metric, ours, peers, settings, digests, ratio, target, met } of report.rows) {
    console.log(`${title}: ${metric}`);
    console.log(`  ${"ours".padEnd(44)} ${formatNumber(ours)}${describeSetting(settings?.ours?.used)}`);
    for (const [name, value] of Object.entries(peers))
      console.log(
        `  ${name.padEnd(44)} ${formatNumber(value)}   ${formatRatio(ratio[name]!, "ours / this ")}${describeSetting(settings?.[name]?.used)}`,
      );
    for (const digest of digests ?? []) console.log(`  ${"SHA-256".padEnd(44)} ${digest}`);
    if (target !== null) console.log(`  target: ${target}: ${met === null ? "not judged" : met ? "met" : "MISSED"}`);
    console.log("");
  }
}

const describeSetting = (used: string | undefined) => (used ? `   (${used})` : "");

export function describeCheck({ peer, blas, threads, gflops, peakGflops, fault }: PeerCheck): string {
  const rate = `${formatNumber(gflops)} of the machine's ${formatNumber(peakGflops)} GFLOP/s in F32, ${threads} ${threads === 1 ? "thread" : "threads"}`;
  return `${peer}: products by ${blas}: ${rate}${fault ? `; peer crippled: ${fault}` : ""}`;
}

export function formatRatio(ratio: number | string, prefix: string): string {
  return typeof ratio === "string" ? ratio : `${prefix}${formatNumber(ratio)}`;
}

export function formatNumber(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Results and the pages made of them do not count as changes: saving one benchmark must not stain the next. */
export function describeCommit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    const root = git("rev-parse", "--show-toplevel");
    const results = ["benchmarks/results", "docs", "README.md"].map((path) => `:!${path}`);
    const changed = git("-C", root, "status", "--porcelain", "--untracked-files=no", "--", ".", ...results) !== "";
    return git("rev-parse", "--short", "HEAD") + (changed ? "+changes" : "");
  } catch {
    return "unknown";
  }
}
