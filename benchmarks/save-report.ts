import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatNumber, type Report } from "./report.js";

const root = join(import.meta.dirname, "..");

/**
 * Keeps a result in `benchmarks/results/<name>.json`, and puts its table into `docs/performance.md` between the comments
 * `<!-- begin NAME -->` and `<!-- end NAME -->`, when the document has them. With `keepOthers` the rows of cases that were
 * not measured now stay as they were.
 */
export function saveReport(measured: Report, { keepOthers = false } = {}): void {
  const file = join(root, "benchmarks", "results", `${measured.name}.json`);
  const report = keepOthers ? addKeptRows(measured, file) : measured;
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  const path = join(root, "docs", "performance.md");
  const [begin, end] = [`<!-- begin ${report.name} -->`, `<!-- end ${report.name} -->`];
  const text = readFileSync(path, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) return;
  writeFileSync(path, `${text.slice(0, from + begin.length)}\n${formatTable(report)}\n${text.slice(to)}`);
}

function addKeptRows(measured: Report, file: string): Report {
  if (!existsSync(file)) return measured;
  const { rows } = JSON.parse(readFileSync(file, "utf8")) as Report;
  const cases = new Set(measured.rows.map((row) => row.case));
  return { ...measured, rows: [...rows.filter((row) => !cases.has(row.case)), ...measured.rows] };
}

function formatTable({ rows, hardware, commit }: Report): string {
  const lines = rows.map(({ case: title, metric, ours, peers, ratio, target, met }) => {
    const beside = Object.keys(peers).map(
      (name) => `${name}: ${formatNumber(peers[name]!)} (ratio ${formatNumber(ratio[name]!)})`,
    );
    const reached = met === null ? "" : `${met ? "met" : "**missed**"}: ${target}`;
    return `| ${title} | ${metric} | ${formatNumber(ours)} | ${beside.join("<br>")} | ${reached} |`;
  });
  return [
    `${hardware}; commit ${commit}. The ratio is ours over the peer's.`,
    "",
    "| case | metric | ours | peers | target |",
    "|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}
