import type { Report } from "./report.js";

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

/** One number of ours beside the same number of each peer. */
export interface Row {
  case: string;
  /** What is measured, with its unit. */
  metric: string;
  ours: number;
  peers: Record<string, number>;
  /** What counts as reached, in words; null when the row only informs. */
  target: string | null;
  /** Whether it was reached; null without a target. */
  met: boolean | null;
}
