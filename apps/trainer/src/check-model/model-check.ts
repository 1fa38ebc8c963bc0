import type { LlamaModel, LoadModelOptions } from "@cria/engine";
import type { Finding } from "./finding.js";

/** What a check is told, as a value: it may run in a process of its own. */
export interface CheckJob {
  /** The model's file. */
  path: string;
  /** What computes: "cpu" or "cuda". */
  device: "cpu" | "cuda";
  /** Which GPU, where there are several: its place in CUDA's list. */
  gpu: number | null;
  threads: number;
  /** Whether the model loads with an adapter; what needs one is else not supported. */
  lora: boolean;
}

export interface CheckContext extends CheckJob {
  /** An empty folder, which is removed afterwards. */
  folder: string;
  /** Loads the model of the job. `path`, `device` and `threads` may be others. */
  load(options: Partial<LoadModelOptions>): Promise<LlamaModel>;
  /** Says which row is being found out: it is the one that falls short if the process dies. */
  begin(row: string): void;
  /** How much of this check is done, from 0 to 1. */
  advance(share: number): void;
}

/** One entry of the list: it gives a row or a few. */
export interface ModelCheck {
  name: string;
  /** Rows of it need a trainable adapter. */
  needsLora: boolean;
  /** Of the whole time, roughly: seconds for a model of half a billion parameters on two cores. */
  seconds: number;
  run(context: CheckContext): Promise<Finding[]>;
}
