import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Benchmark } from "./benchmark.js";
import { formatNumber, type Report } from "./report.js";

const root = join(import.meta.dirname, "..");

/**
 * Keeps a result in `benchmarks/results/<name>.json` and its figure in `docs/<name>.svg`, and puts its table into the pages
 * of `docs/` that have the comments `<!-- begin NAME -->` and `<!-- end NAME -->`.
 */
export function saveReport(report: Report, benchmark: Benchmark): void {
  writeFileSync(join(root, "benchmarks", "results", `${report.name}.json`), `${JSON.stringify(report, null, 2)}\n`);
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
