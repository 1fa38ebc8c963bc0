import { z } from "zod";
import type { PythonSandboxOptions } from "./python-sandbox.js";

/** Keys of a sandbox in config files, which tools and interactions share. */
export const sandboxConfig = {
  /** CPU time of a program in seconds; default 5. */
  cpu_s: z.number().positive().optional(),
  /** Memory of a program in MiB; default 256. Python itself takes about 30 of it. */
  memory_mb: z.number().min(16).max(4096).optional(),
  /** Alias of `memory_mb`, as other frameworks spell it. */
  memory_limit_mb: z.number().min(16).max(4096).optional(),
  /** Python's files, which live in memory, in MiB; default 32. */
  disk_mb: z.number().positive().optional(),
  /** Bytes of output and error text together; default 16,384. */
  output_bytes: z.int().positive().optional(),
  /** Programs that run at once, each in a process; default: one for each core, as far as half of the memory goes. */
  num_workers: z.int().positive().optional(),
  /** Seed of Python's random numbers. */
  seed: z.int().nonnegative().optional(),
};

type SandboxConfig = { [K in keyof typeof sandboxConfig]?: number } & { timeout_s?: number };

/** The options that the config sets; absent keys keep their defaults. */
export function readSandboxOptions(config: SandboxConfig): PythonSandboxOptions {
  const options: PythonSandboxOptions = {
    cpuS: config.cpu_s,
    timeoutS: config.timeout_s,
    memoryMb: config.memory_mb ?? config.memory_limit_mb,
    diskMb: config.disk_mb,
    outputBytes: config.output_bytes,
    workers: config.num_workers,
    seed: config.seed,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
