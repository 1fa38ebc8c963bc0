import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Report } from "../report.js";

/** Results lie in `<kind of machine>/<benchmark>.json`. */
export const resultsFolder = join(import.meta.dirname, "..", "results");

/**
 * Keeps a result in its machine's folder. With `keepOthers` the rows of cases that were not measured now stay as they
 * were, with the commits that they were measured at.
 */
export function saveReport(measured: Report, { keepOthers = false } = {}, folder = resultsFolder): void {
  const path = join(folder, measured.machine.kind, `${measured.name}.json`);
  const report = keepOthers && existsSync(path) ? addKeptRows(measured, readReport(path)) : measured;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`);
}

/** Cases stay in their order; new ones follow. */
function addKeptRows(measured: Report, earlier: Report): Report {
  const measuredCases = new Set(measured.rows.map((row) => row.case));
  const cases = new Set([...earlier.rows, ...measured.rows].map((row) => row.case));
  const rows = [...cases].flatMap((name) =>
    (measuredCases.has(name) ? measured : earlier).rows.filter((row) => row.case === name),
  );
  return { ...measured, rows };
}

const readReport = (path: string): Report => JSON.parse(readFileSync(path, "utf8"));

/** All reports of each kind of machine, both in alphabetical order. */
export function readResults(folder = resultsFolder): Map<string, Report[]> {
  const kinds = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return new Map(
    kinds
      .map(({ name }) => name)
      .sort()
      .map((kind) => {
        const files = readdirSync(join(folder, kind)).filter((file) => file.endsWith(".json"));
        return [kind, files.sort().map((file) => readReport(join(folder, kind, file)))];
      }),
  );
}
