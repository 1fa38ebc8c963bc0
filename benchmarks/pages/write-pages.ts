/**
 * README.md and the pages of `docs/` hold results between comments, which are made anew from `results/`: `<!-- begin
 * machines -->`: a section for each kind of machine; `<!-- begin headline KIND -->`: its sentences; `<!-- begin
 * KIND/BENCHMARK -->`: one table, and `<!-- begin KIND/BENCHMARK/PART -->` a part of a benchmark that has several; each
 * up to `<!-- end ... -->`.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawFigure as drawAlgorithms, formatTable as formatAlgorithms } from "../algorithms/present.js";
import { formatTable as formatCluster } from "../cluster/present.js";
import { drawFigures as drawLearning, formatTable as formatLearning } from "../learning/present.js";
import type { Machine } from "../machine.js";
import type { Report } from "../report.js";
import { formatTable as formatTrl } from "../trl/present.js";
import { formatDecode } from "./decode-table.js";
import { writeHeadline } from "./headline.js";
import { readResults } from "./results.js";
import { describeProvenance, formatRows } from "./tables.js";

const root = join(import.meta.dirname, "..", "..");

interface Presentation {
  /** Section of the machine's results; none for benchmarks with a separate page. */
  title?: string;
  /** Beginnings of the metrics that its table shows; absent: all. `results/` has every number. */
  shows?: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: each knows its own rows.
  formatTable?(report: Report<any>, part?: string): string;
  /** SVGs of the machine whose table a page shows, by their names: each is kept as `docs/<name>.svg`. */
  // biome-ignore lint/suspicious/noExplicitAny: each knows its own rows.
  drawFigures?(report: Report<any>): Record<string, string>;
}

/** In the order of the sections. */
const presentations: Record<string, Presentation> = {
  decode: { title: "Decode", formatTable: formatDecode },
  "multi-turn": { title: "Multi-turn", shows: ["sampled tokens", "tokens evaluated"] },
  drafting: { title: "Drafting", shows: ["sampled tokens", "conversations"] },
  train: { title: "Train", shows: ["tokens per second", "peak resident", "memory added"] },
  length: { title: "Length" },
  roofline: { title: "Roofline" },
  step: { title: "Step", shows: ["steps per second", "share of everything else"] },
  busy: { title: "Beside busy processes" },
  async: { title: "Sampling ahead" },
  serve: { title: "Serve" },
  images: { title: "Images" },
  tokenize: { title: "Tokenize", shows: ["microseconds per delta", "growth"] },
  algorithms: {
    formatTable: formatAlgorithms,
    drawFigures: (report) => ({ algorithms: drawAlgorithms(report) }),
  },
  cluster: { formatTable: formatCluster },
  learning: { formatTable: formatLearning, drawFigures: drawLearning },
  trl: { formatTable: formatTrl },
};

export function writePages(): void {
  for (const [path, text] of renderPages(readResults())) writeFileSync(join(root, path), text);
}

/** The text of each page and figure as its results want it, by its path in the repository. */
export function renderPages(results: ReadonlyMap<string, readonly Report[]>): Map<string, string> {
  const files = new Map<string, string>();
  const docs = readdirSync(join(root, "docs")).filter((file) => file.endsWith(".md"));
  for (const path of ["README.md", ...docs.map((file) => join("docs", file))]) {
    const text = readFileSync(join(root, path), "utf8");
    const fill = (_whole: string, name: string) =>
      `<!-- begin ${name} -->\n${renderBlock(name, results, files)}\n<!-- end ${name} -->`;
    files.set(path, text.replace(/<!-- begin (.+?) -->\n[\s\S]*?<!-- end \1 -->/g, fill));
  }
  return files;
}

function renderBlock(
  name: string,
  results: ReadonlyMap<string, readonly Report[]>,
  files: Map<string, string>,
): string {
  if (name === "machines") return [...results].map(([, reports]) => renderMachine(reports)).join("\n\n");
  const [, headlineKind] = /^headline (.+)$/.exec(name) ?? [];
  if (headlineKind) return renderHeadline(getReports(headlineKind, results));
  const [kind, benchmark, part] = name.split("/");
  const report = getReports(kind!, results).find((one) => one.name === benchmark);
  if (!report) throw new Error(`a page shows ${name}, which has no results`);
  const { drawFigures, formatTable } = presentations[report.name]!;
  for (const [figure, svg] of Object.entries(drawFigures?.(report) ?? {}))
    files.set(join("docs", `${figure}.svg`), svg);
  if (part !== undefined) return formatTable!(report, part);
  return `${describeHardware(report.machine)} ${renderTable(report)}`;
}

function getReports(kind: string, results: ReadonlyMap<string, readonly Report[]>): readonly Report[] {
  const reports = results.get(kind);
  if (!reports) throw new Error(`a page shows results of ${kind}, which has none`);
  return reports;
}

function renderMachine(reports: readonly Report[]): string {
  const { machine } = reports[0]!;
  const sections = Object.entries(presentations).flatMap(([name, { title }]) => {
    const report = reports.find((one) => one.name === name);
    return report && title ? [`#### ${title}\n\n${renderTable(report)}`] : [];
  });
  const parts = [`### ${machine.kind}`, describeHardware(machine), renderHeadline(reports), ...sections];
  return parts.filter((part) => part !== "").join("\n\n");
}

function describeHardware({ cpu, threads, cores, memory, gpu }: Machine): string {
  return `${cpu}: ${threads} threads on ${cores} cores, ${memory} GiB, ${gpu ?? "no GPU"}.`;
}

const renderHeadline = (reports: readonly Report[]) =>
  writeHeadline(reports)
    .map((sentence) => `- ${sentence}`)
    .join("\n");

function renderTable(report: Report): string {
  const { formatTable, shows } = presentations[report.name]!;
  return `${describeProvenance(report)}\n\n${formatTable?.(report) ?? formatRows(report, shows)}`;
}
