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

/**
 * Runs JavaScript in QuickJS, each program in an interpreter of its own. What it prints, and the value of its last
 * expression, are its output. Input comes line by line from `readline()`, which gives null at the end. Timers run in
 * virtual time; there is no network, file or module to reach.
 */
export class JavaScriptSandbox implements Sandbox {
  private readonly options: Required<SandboxOptions>;
  private readonly pool: WorkerPool;

  constructor(options: SandboxOptions = {}) {
    this.options = { ...defaultSandbox, ...options };
    this.pool = new WorkerPool({
      file: locateWorker("quickjs-worker"),
      workerData: () =>
        importOptional(
          async () => ({
            core: resolvePackage("quickjs-emscripten-core"),
            variant: resolvePackage("@jitl/quickjs-wasmfile-release-sync"),
            wasm: resolvePackage("@jitl/quickjs-wasmfile-release-sync/wasm"),
          }),
          "quickjs-emscripten-core @jitl/quickjs-wasmfile-release-sync",
          "running JavaScript",
        ),
      size: this.options.workers,
      reuse: true,
      resourceLimits: { maxOldGenerationSizeMb: 128 },
      startTimeoutS: 60,
    });
  }

  run(
    code: string,
    { stdin = "", timeoutS = this.options.timeoutS, signal }: RunOptions = {},
  ): Promise<SandboxOutcome> {
    return this.pool.run({ code, stdin, memoryMb: this.options.memoryMb }, { ...this.options, timeoutS }, signal);
  }

  dispose(): Promise<void> {
    return this.pool.dispose();
  }
}
