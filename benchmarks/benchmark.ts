import type { Report } from "./report.js";
import type { Row } from "./row.js";

/** What a benchmark's `index.ts` exports. */
export interface Benchmark {
  run(options: BenchmarkOptions): Promise<Row[]>;
  /** An SVG of the result, kept as `docs/<name>.svg`. */
  drawFigure?(report: Report): string;
  /** A Markdown table for the documents, where the usual one (a line for each row) would be dull. */
  formatTable?(report: Report): string;
}

export interface BenchmarkOptions {
  /** False for cases that the user left out with `--only`. */
  includes(title: string): boolean;
  /** Tells what is going on; never part of the result. */
  log(text: string): void;
}
