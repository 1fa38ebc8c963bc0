import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Benchmark } from "./benchmark.js";
import { formatNumber, type Report } from "./report.js";

const root = join(import.meta.dirname, "..");

/**
 * Keeps a result in `benchmarks/results/<name>.json` and its figure in `docs/<name>.svg`, and puts its table into the pages
 * of `docs/` that have the comments `<!-- begin NAME -->` and `<!-- end NAME -->`. With `keepOthers` the rows of cases that
 * were not measured now stay as they were, and the commits of both are named.
 */
export function saveReport(measured: Report, benchmark: Benchmark, { keepOthers = false } = {}): void {
  const kept = join(root, "benchmarks", "results", `${measured.name}.json`);
  const report = keepOthers ? addKeptRows(measured, kept) : measured;
  writeFileSync(kept, `${JSON.stringify(report, null, 2)}\n`);
  const docs = join(root, "docs");
  if (benchmark.drawFigure) writeFileSync(join(docs, `${report.name}.svg`), benchmark.drawFigure(report));
  const table = (benchmark.formatTable ?? formatTable)(report);
  const [begin, end] = [`<!-- begin ${report.name} -->`, `<!-- end ${report.name} -->`];
  for (const page of readdirSync(docs).filter((file) => file.endsWith(".md"))) {
    const text = readFileSync(join(docs, page), "utf8");
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) continue;
    writeFileSync(
      join(docs, page),
      `${text.slice(0, from + begin.length)}\n${describe(report)}\n\n${table}\n${text.slice(to)}`,
    );
  }
}

function addKeptRows(measured: Report, path: string): Report {
  if (!existsSync(path)) return measured;
  const earlier = JSON.parse(readFileSync(path, "utf8")) as Report;
  const cases = new Set(measured.rows.map((row) => row.case));
  const rows = earlier.rows.filter((row) => !cases.has(row.case));
  if (rows.length === 0) return measured;
  const commits = new Set([...earlier.commit.split(", "), measured.commit]);
  return { ...measured, commit: [...commits].join(", "), rows: [...rows, ...measured.rows] };
}

function describe({ hardware, commit }: Report): string {
  return `${hardware}; commit ${commit}.`;
}

/** The ratio is ours over the peer's. */
function formatTable({ rows }: Report): string {
  const lines = rows.map(({ case: title, metric, ours, peers, ratio, target, met }) => {
    const beside = Object.keys(peers).map(
      (name) => `${name}: ${formatNumber(peers[name]!)} (ratio ${formatNumber(ratio[name]!)})`,
    );
    const reached = met === null ? "" : `${met ? "met" : "**missed**"}: ${target}`;
    return `| ${title} | ${metric} | ${formatNumber(ours)} | ${beside.join("<br>")} | ${reached} |`;
  });
  return ["| case | metric | ours | peers (ours / theirs) | target |", "|---|---|---|---|---|", ...lines].join("\n");
}
