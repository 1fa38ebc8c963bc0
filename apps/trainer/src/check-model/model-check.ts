import type { Device } from "@cria/core";
import type { LlamaModel, LoadModelOptions } from "@cria/engine";
import type { Finding } from "./finding.js";

/** Input of a check, as a plain value: the check may run in a separate process. */
export interface CheckJob {
  /** Path of the model's file. */
  path: string;
  device: Exclude<Device, "auto">;
  /** Index of the GPU in CUDA's list, if there are several. */
  gpu: number | null;
  threads: number;
  /** True if the model loads with an adapter; rows that need one are "not supported" otherwise. */
  lora: boolean;
}

export interface CheckContext extends CheckJob {
  /** An empty folder, which is removed afterwards. */
  folder: string;
  /** Loads the job's model; `path`, `device` and `threads` may be overridden. */
  load(options: Partial<LoadModelOptions>): Promise<LlamaModel>;
  /** Announces the row being computed: it falls short if the process dies. */
  begin(row: string): void;
  /** Share of this check that is done, from 0 to 1. */
  advance(share: number): void;
}

/** One entry of the list: it gives one or more rows. */
export interface ModelCheck {
  name: string;
  /** True if its rows need a trainable adapter. */
  needsLora: boolean;
  /** Rough duration in seconds for a model of half a billion parameters on two cores. */
  seconds: number;
  run(context: CheckContext): Promise<Finding[]>;
}
