import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import type { SandboxLimits, SandboxOutcome } from "./worker-pool.js";

export interface SandboxOptions extends Partial<SandboxLimits> {
  /** Memory of the program in MiB; default 256. */
  memoryMb?: number;
  /** Programs that run at once; default 1. */
  workers?: number;
}

export const defaultSandbox = { cpuS: 5, timeoutS: 15, outputBytes: 16_384, memoryMb: 256, workers: 1 } as const;

export interface RunOptions {
  /** What the program reads as its input. */
  stdin?: string;
  /** Wall time of this run in seconds, instead of the sandbox's. */
  timeoutS?: number;
  signal?: AbortSignal;
}

/** Runs programs that nobody trusts. They share nothing, with each other or with this process. */
export interface Sandbox {
  run(code: string, options?: RunOptions): Promise<SandboxOutcome>;
  dispose(): Promise<void>;
}

/** A worker's file: beside this module as source, and beside the bundle when built. */
export function locateWorker(name: string): URL {
  const extension = import.meta.url.endsWith(".ts") ? "mjs" : "js";
  return new URL(`./${name}.${extension}`, import.meta.url);
}

/** The URL under which a worker imports a package of ours. */
export function resolvePackage(name: string): string {
  return pathToFileURL(createRequire(import.meta.url).resolve(name)).href;
}
