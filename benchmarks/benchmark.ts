import type { Measured } from "./row.js";

/** The exports of a benchmark's `index.ts`. */
export interface Benchmark {
  run(options: BenchmarkOptions): Promise<Measured>;
}

export interface BenchmarkOptions {
  /** False for cases that the user left out with `--only`. */
  includes(title: string): boolean;
  /** Reports progress; never part of the result. */
  log(text: string): void;
}
