import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { importOptional } from "../import-optional.js";
import { fillSandboxOptions, PooledSandbox } from "./pooled-sandbox.js";
import { takeSnapshot } from "./python-snapshot.js";
import { locateChild, resolvePackage, type SandboxOptions } from "./sandbox.js";
import type { ChildOptions } from "./sandbox-child.js";

export interface PythonSandboxOptions extends SandboxOptions {
  /** Most bytes in files, in MiB; default 32. */
  diskMb?: number;
  /**
   * Seed of Python's `random`, which makes a program's results repeatable; without it every run draws other numbers.
   */
  seed?: number;
}

/** Memory of a child without its program, in MiB. */
const CHILD_MB = 350;

/**
 * Runs Python in Pyodide, each program in an interpreter in its first state. The output is everything that the program
 * prints, and the value of its last expression. The standard library is there; files exist only in memory; there is no
 * network, process, or package to install.
 */
export class PythonSandbox extends PooledSandbox {
  constructor(options: PythonSandboxOptions = {}) {
    const filled = { diskMb: 32, seed: -1, ...options, ...fillSandboxOptions(options, CHILD_MB) };
    super(filled, async () => {
      const described = await describeChild(filled);
      return { ...described, data: await takeSnapshot(described) };
    });
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
