import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { importOptional } from "../import-optional.js";
import {
  defaultSandbox,
  locateWorker,
  type RunOptions,
  resolvePackage,
  type Sandbox,
  type SandboxOptions,
} from "./sandbox.js";
import { type SandboxOutcome, WorkerPool } from "./worker-pool.js";

export interface PythonSandboxOptions extends SandboxOptions {
  /** Most bytes in files, in MiB; default 32. */
  diskMb?: number;
  /** Seed of Python's `random`, so that a program gives the same again; without it every run draws anew. */
  seed?: number;
}

/** Memory of a Python that has just started, made once for the process. */
let snapshot: Promise<SharedArrayBuffer> | null = null;

/**
 * Runs Python in Pyodide, each program in an interpreter of its own, started from a snapshot. What it prints, and the
 * value of its last expression, are its output. The standard library is there; files exist in memory only; there is no
 * network, process, or package to install.
 */
export class PythonSandbox implements Sandbox {
  private readonly options: Required<PythonSandboxOptions>;
  private readonly pool: WorkerPool;

  constructor(options: PythonSandboxOptions = {}) {
    this.options = { ...defaultSandbox, diskMb: 32, seed: -1, ...options };
    const limits = { memoryBytes: this.options.memoryMb * 2 ** 20, diskBytes: this.options.diskMb * 2 ** 20 };
    this.pool = new WorkerPool({
      file: locateWorker("python-worker"),
      workerData: async () => {
        const folder = await findPyodide();
        snapshot ??= makeSnapshot(folder);
        return { folder, limits, snapshot: await snapshot, makeSnapshot: false };
      },
      size: this.options.workers,
      reuse: false,
      resourceLimits,
      startTimeoutS: START_TIMEOUT_S,
    });
  }

  run(
    code: string,
    { stdin = "", timeoutS = this.options.timeoutS, signal }: RunOptions = {},
  ): Promise<SandboxOutcome> {
    return this.pool.run({ code, stdin, seed: this.options.seed }, { ...this.options, timeoutS }, signal);
  }

  dispose(): Promise<void> {
    return this.pool.dispose();
  }
}

/** Of the worker's JavaScript; Python's memory lies outside of it and is limited by itself. */
const resourceLimits = { maxOldGenerationSizeMb: 256, stackSizeMb: 8 };
const START_TIMEOUT_S = 120;

async function findPyodide(): Promise<string> {
  const url = await importOptional(async () => resolvePackage("pyodide/package.json"), "pyodide", "running Python");
  return dirname(fileURLToPath(url));
}

async function makeSnapshot(folder: string): Promise<SharedArrayBuffer> {
  const limits = { memoryBytes: 2 ** 30, diskBytes: 2 ** 30 };
  const worker = new Worker(locateWorker("python-worker"), {
    workerData: { folder, limits, snapshot: null, makeSnapshot: true },
    env: {},
    execArgv: [],
    resourceLimits,
  });
  try {
    return await new Promise<SharedArrayBuffer>((resolve, reject) => {
      worker.once("message", (message: { snapshot: SharedArrayBuffer }) => resolve(message.snapshot));
      worker.once("error", reject);
      worker.once("exit", (code) => reject(new Error(`Python did not start (exit code ${code})`)));
    });
  } catch (error) {
    snapshot = null;
    throw error;
  } finally {
    await worker.terminate();
  }
}
