import { createRequire } from "node:module";
import { availableParallelism, totalmem } from "node:os";
import { pathToFileURL } from "node:url";

/** The ending of a program; every status except `ok` has an error text. */
export type SandboxStatus = "ok" | "error" | "cpu" | "timeout" | "memory" | "aborted" | "crashed";

export interface SandboxOutcome {
  status: SandboxStatus;
  /** The program's output, up to the output limit, also when it was stopped. */
  output: string;
  truncated: boolean;
  /** For the reader of the output: the program's own error, or the reason why it was stopped. */
  error?: string;
}

export interface SandboxLimits {
  /** CPU time of the program in seconds; default 5. */
  cpuS: number;
  /**
   * Wall time in seconds, from when a child takes the program; sleeping counts, waiting for a child does not. Default
   * 15.
   */
  timeoutS: number;
  /** Bytes of output and the program's own error together, in UTF-8; default 16,384. */
  outputBytes: number;
}

export interface SandboxOptions extends Partial<SandboxLimits> {
  /** Memory of the program in MiB; default 256. */
  memoryMb?: number;
  /** Programs that run at once, each in a process; default: one for each core, as far as half of the memory goes. */
  workers?: number;
}

export const defaultSandbox = { cpuS: 5, timeoutS: 15, outputBytes: 16_384, memoryMb: 256 } as const;

/**
 * Children that may run at once, each with `childMb` (memory without its program, in MiB) and a program of `memoryMb`.
 */
export function countWorkers(memoryMb: number, childMb: number): number {
  // A container's limit; 0 or a huge number without one.
  const limit = process.constrainedMemory?.() || Number.POSITIVE_INFINITY;
  const freeMb = Math.min(totalmem(), limit) / 2 ** 20 / 2;
  return Math.max(1, Math.min(availableParallelism(), Math.floor(freeMb / (memoryMb + childMb))));
}

export interface RunOptions {
  /** The program's standard input. */
  stdin?: string;
  /** Wall time of this run in seconds; overrides the sandbox's. */
  timeoutS?: number;
  signal?: AbortSignal;
  /** Called when a child takes the program: its limits count from then on. */
  onStart?: () => void;
}

/** Runs untrusted programs. They share nothing with each other or with this process. */
export interface Sandbox {
  run(code: string, options?: RunOptions): Promise<SandboxOutcome>;
  dispose(): Promise<void>;
}

/** A child's program: next to this module as source, and next to the bundle when built. */
export function locateChild(name: string): URL {
  const extension = import.meta.url.endsWith(".ts") ? "mjs" : "js";
  return new URL(`./${name}.${extension}`, import.meta.url);
}

/** The URL from which a child imports a package of ours. */
export function resolvePackage(name: string): string {
  return pathToFileURL(createRequire(import.meta.url).resolve(name)).href;
}
