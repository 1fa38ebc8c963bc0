import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { importOptional } from "../import-optional.js";
import { ProcessPool } from "./process-pool.js";
import { takeSnapshot } from "./python-snapshot.js";
import {
  countWorkers,
  defaultSandbox,
  locateChild,
  type RunOptions,
  resolvePackage,
  type Sandbox,
  type SandboxOptions,
  type SandboxOutcome,
} from "./sandbox.js";
import type { ChildOptions } from "./sandbox-child.js";

export interface PythonSandboxOptions extends SandboxOptions {
  /** Most bytes in files, in MiB; default 32. */
  diskMb?: number;
  /** Seed of Python's `random`, so that a program repeats its results; without it every run draws other numbers. */
  seed?: number;
}

/** What a child takes besides its program, in MiB. */
const CHILD_MB = 350;

/**
 * Runs Python in Pyodide, each program in an interpreter that has run none before. What it prints, and the value of its
 * last expression, are its output. The standard library is there; files exist in memory only; there is no network,
 * process, or package to install.
 */
export class PythonSandbox implements Sandbox {
  private readonly options: Required<PythonSandboxOptions>;
  private readonly pool: ProcessPool;

  constructor(options: PythonSandboxOptions = {}) {
    const memoryMb = options.memoryMb ?? defaultSandbox.memoryMb;
    this.options = { ...defaultSandbox, workers: countWorkers(memoryMb, CHILD_MB), diskMb: 32, seed: -1, ...options };
    const child = async () => {
      const described = await describeChild(this.options);
      return { ...described, data: await takeSnapshot(described) };
    };
    this.pool = new ProcessPool({ child, size: this.options.workers });
  }

  run(
    code: string,
    { stdin = "", timeoutS = this.options.timeoutS, ...options }: RunOptions = {},
  ): Promise<SandboxOutcome> {
    return this.pool.run({ code, stdin }, { ...this.options, timeoutS }, options);
  }

  dispose(): Promise<void> {
    return this.pool.dispose();
  }

  /** Processes that live, for tests. */
  get pids(): number[] {
    return this.pool.pids;
  }
}

async function describeChild(options: Required<PythonSandboxOptions>): Promise<ChildOptions> {
  const { memoryMb, diskMb, outputBytes, seed } = options;
  const url = await importOptional(async () => resolvePackage("pyodide/package.json"), "pyodide", "running Python");
  const folder = dirname(fileURLToPath(url));
  const watchdog = locateChild("watchdog").href;
  return {
    file: locateChild("python-child"),
    // Files lie in V8's memory, in arrays that grow by doubling.
    settings: { folder, watchdog, memoryMb, diskMb, watchedMb: memoryMb + 2 * diskMb, outputBytes, seed },
    readable: [folder],
    heapMb: 256,
    startTimeoutS: 120,
  };
}
