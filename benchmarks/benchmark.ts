import type { Measured } from "./row.js";

/** What a benchmark's `index.ts` exports. */
export interface Benchmark {
  run(options: BenchmarkOptions): Promise<Measured>;
}

export interface BenchmarkOptions {
  /** False for cases that the user left out with `--only`. */
  includes(title: string): boolean;
  /** Tells what is going on; never part of the result. */
  log(text: string): void;
}
